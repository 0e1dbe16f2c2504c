"""The explorer's zygote outlives its children, whatever they left unread."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import cattrs

from generic.testing.drill.kills.child import STOP, Order

ZYGOTE = [sys.executable, "-m", "generic.testing.drill.kills.child"]


def test_an_order_that_a_killed_child_read_partly_is_ignored():
    """Both read the same pipe, byte for byte, and a kill does not wait for the end of a line."""
    rests = b"".join(STOP[read:] for read in range(len(STOP)))
    ended = subprocess.run(ZYGOTE, input=rests, capture_output=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


TALKATIVE = """
import subprocess
from extensions.local.rehearsal import LocalRehearsal

class Talkative(LocalRehearsal):
    def attach(self, shared):
        print("as an author does", flush=True)
        subprocess.run(["echo", "as programs of an author do"])
        raise ValueError("no more")
"""


def test_output_of_an_author_is_no_answer(tmp_path):
    (tmp_path / "talkative.py").write_text(TALKATIVE)
    order = Order(kubeconfig="missing", type="x", shared=[{}], calls=str(tmp_path / "calls"))
    done = subprocess.run(
        [*ZYGOTE, "talkative:Talkative"],
        input=f"{json.dumps(cattrs.unstructure(order))}\n".encode(),
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    _pid, code = map(int, done.stdout.split())
    assert code == 1
    assert b"as an author does" in done.stderr
    assert b"as programs of an author do" in done.stderr
