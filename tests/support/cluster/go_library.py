"""Runs the extension on Gardener's Go library: one reconciliation, or one change of nodes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.landscape.go_programs import build_library

__all__ = ["AUTHORITY", "run_library", "serving_library"]

AUTHORITY = "ca-provider-test"
"""The certificate authority of its control plane."""
_SECONDS = 120


def run_library(kubeconfig: Path, action: str, **given: Any) -> list[Any]:
    """Return the values that it prints; fail with its error.

    The actions are `controlplane`, `worker`, `webhooks`, `managedresources` and `nodes`.
    """
    done = subprocess.run(
        [build_library(print), kubeconfig, action],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{action}: {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def serving_library(kubeconfig: Path, **given: Any) -> Iterator[None]:
    """Serve its webhook, with the certificates of the library, until the context is left.

    Fails with its error if it ended before.
    """
    with subprocess.Popen(
        [build_library(print), kubeconfig, "serve"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(given))
        process.stdin.flush()
        try:
            yield
        finally:
            process.stdin.close()
            errors = process.stderr.read()
    assert process.returncode == 0, errors
