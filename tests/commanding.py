"""Commands of `actuator` in this process: to start another one takes seconds."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

from isolation import isolated

from generic.tools.cli.main import main

__all__ = ["run_command"]


def run_command(*arguments: object, status: int = 0) -> CompletedProcess[str]:
    """Run `actuator` as the command line does, isolated from what ran before and what runs later.

    Raises AssertionError with what it printed if it exits with another status.
    """
    __tracebackhide__ = True
    texts = [str(argument) for argument in arguments]
    out, err = _stream(), _stream()
    with isolated(), redirect_stdout(out), redirect_stderr(err):
        code = _status_of(texts)
    done = CompletedProcess(texts, code, _text(out), _text(err))
    printed = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    assert code == status, f"actuator {' '.join(texts)}: status {code}, not {status}\n{printed}"
    return done


def _status_of(arguments: Sequence[str]) -> object:
    try:
        main(arguments)
    except SystemExit as end:
        return end.code or 0
    return 0


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    return stream.buffer.getvalue().decode()
