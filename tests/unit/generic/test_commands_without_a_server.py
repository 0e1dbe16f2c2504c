"""Commands whose API server does not answer, or whose reader ends: one sentence and the status."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from generic.tools.cli.main import cli
from generic.tools.cli.statuses import CheckCommand
from generic.tools.record.chain import chained
from tests.support.objects import records
from tests.support.pages.commands import run_command

ACTUATOR = [sys.executable, "-c", "from generic.tools.cli.main import main; main()"]
EXTENSION = "extensions.local:extension"
ARGUMENTS = {
    "drain": f"{EXTENSION} --timeout 0",
    "explain": "shoot--web--shop",
    "orphans close": "NAME",
    "orphans list": "",
    "orphans reopen": "NAME",
    "orphans verify": EXTENSION,
    "record export": "--since 2026-10-01",
    "record list": "--since 2026-10-01 --by account",
    "record summary": "--since 2026-10-01",
    "stuck": "",
}
_OTHERS = ("run", "dev", "drill", "shoot")
"""A manager waits for its API server, a drill starts its cloud first; `shoot` is for authors."""


def commands_of(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


COMMANDS = {
    name: command
    for name, command in commands_of(cli)
    if any("--kubeconfig" in param.opts for param in command.params)
    and name.split()[0] not in _OTHERS
}


@pytest.fixture
def unreachable(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A kubeconfig, and the address of its server: a port on which no program listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        config = {
            "clusters": [{"name": "c", "cluster": {"server": f"https://{address}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        yield path, address


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_server_that_does_not_answer_is_named_with_the_remedy(
    name: str, unreachable: tuple[Path, str]
) -> None:
    kubeconfig, address = unreachable
    status = 3 if isinstance(COMMANDS[name], CheckCommand) else 1
    line = f"{name} {ARGUMENTS[name]}".split()
    done = run_command(*line, "--kubeconfig", kubeconfig, status=status)
    assert done.stdout == ""
    (error,) = done.stderr.splitlines()
    remedy = f"check that the server in the kubeconfig, {address}, is the right one and runs"
    assert error.startswith("Error: ")
    assert error.endswith(f"; {remedy}")


@pytest.mark.parametrize(
    ("line", "status"),
    [("--help", 1), ("rules", 1), ("record verify FILE", 3)],
)
def test_a_reader_that_ends_is_no_error_and_no_negative_answer(
    line: str, status: int, tmp_path: Path
) -> None:
    """As in `actuator rules | head -1`: status 1 of a check would be its negative answer."""
    export = tmp_path / "export"
    export.write_text("".join(f"{line}\n" for line, _ in chained(records.export().header, ())))
    reader, writer = os.pipe()
    os.close(reader)
    words = [str(export) if word == "FILE" else word for word in line.split()]
    with os.fdopen(writer) as closed:
        done = subprocess.run(
            [*ACTUATOR, *words], stdout=closed, stderr=subprocess.PIPE, timeout=120, check=False
        )
    assert (done.returncode, done.stderr) == (status, b"")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("from generic.tools.cli.screen import Screen\nScreen().print('x')", 3),
        ("raise ActuatorError('x')", 3),
        ("raise No('x')", 1),
        ("from generic.tools.cli.terminal import Terminal\nTerminal().say('x')\nraise No('x')", 1),
        ("from generic.tools.cli.terminal import Terminal\nTerminal().say('x')", 0),
    ],
)
def test_a_reader_that_ends_changes_no_verdict(code: str, status: int) -> None:
    """A drill goes on to its verdict and cleans up, also if errors have no reader either."""
    lines = "\n".join(f"    {line}" for line in code.splitlines())
    program = (
        "from actuator.errors import ActuatorError\n"
        "from generic.tools.cli.statuses import No, reported\n"
        f"with reported(3):\n{lines}\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as closed:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=closed, stderr=closed, timeout=120, check=False
        )
    assert done.returncode == status


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--since 2026-10-01 --until 2026-10-01", "'--until': must be later than --since"),
        ("--until 2026-09-01 --since 2026-10-01", "'--until': must be later than --since"),
        ("--since 2026-10-01T00:00:00", "a timestamp such as 2026-07-01T12:00:00Z, got '2026-10"),
        ("--since 2026-02-30", "expected a date such as 2026-07-01"),
    ],
)
@pytest.mark.parametrize("name", ["list", "export", "summary", "drills"])
def test_a_wrong_period_is_refused_and_not_empty(name: str, line: str, words: str) -> None:
    folder = ["."] if name == "drills" else []
    assert words in run_command("record", name, *line.split(), *folder, status=2).stderr
