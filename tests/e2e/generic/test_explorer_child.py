"""The explorer's zygote outlives its children, whatever they left unread."""

from __future__ import annotations

import subprocess
import sys

from generic.testing.drill.kills.child import STOP

ZYGOTE = [sys.executable, "-m", "generic.testing.drill.kills.child"]


def test_what_a_child_was_killed_while_reading_is_no_order():
    """Both read the same pipe, byte for byte, and a kill does not wait for the end of a line."""
    rests = b"".join(STOP[read:] for read in range(len(STOP)))
    ended = subprocess.run(ZYGOTE, input=rests, capture_output=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
