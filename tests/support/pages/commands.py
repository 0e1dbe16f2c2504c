"""Commands of `actuator` in this process: to start another one takes seconds."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

from generic.tools.cli.main import main
from tests.support.suite.isolation import isolated

__all__ = ["run_command"]


def run_command(*arguments: object, status: int = 0) -> CompletedProcess[str]:
    """Run `actuator` as the command line does, isolated from earlier and later runs.

    Raises AssertionError with its output if it exits with another status.
    """
    __tracebackhide__ = True
    texts = [str(argument) for argument in arguments]
    out = _Stream()
    err = _Stream()
    with isolated(), redirect_stdout(out), redirect_stderr(err):
        code = _status_of(texts)
    done = CompletedProcess(texts, code, out.text(), err.text())
    printed = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    assert code == status, f"actuator {' '.join(texts)}: status {code}, not {status}\n{printed}"
    return done


def _status_of(arguments: Sequence[str]) -> int:
    try:
        main(arguments)
    except SystemExit as end:
        code = end.code or 0
        assert isinstance(code, int), code
        return code
    return 0


class _Stream(io.TextIOWrapper):
    """A text stream whose bytes are kept, for programs that write to its buffer also."""

    def __init__(self) -> None:
        self.written = io.BytesIO()
        super().__init__(self.written, encoding="utf-8", newline="", write_through=True)

    def text(self) -> str:
        return self.written.getvalue().decode()
