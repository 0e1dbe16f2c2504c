"""The script that turns a new machine's disk into what units and files ask for.

What it does with units follows gardener-node-agent: enabled unless told otherwise, restarted
unless told to stop. Pure: contents of Secrets are read before, by `operatingsystem`.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Iterator, Sequence

from actuator.meta import Base64
from actuator.v1alpha1 import File, Unit

_UNITS = "/etc/systemd/system"
_DEFAULT_PERMISSIONS = 0o644


def script(files: Iterable[tuple[File, bytes]], units: Sequence[Unit]) -> bytes:
    """A shell script that writes the files with these contents, then the units, then starts them.

    The same input gives the same script, so that nothing changes where nothing has changed.
    """
    lines = ["#!/bin/bash", "set -eu"]
    for file, content in files:
        lines += _guarded(file.host_name, _file(file, content))
    for unit in units:
        lines += _unit_files(unit)
    lines.append("systemctl daemon-reload")
    for unit in units:
        lines += _start(unit)
    return "\n".join([*lines, ""]).encode()


def _file(file: File, content: bytes) -> Iterator[str]:
    permissions = _DEFAULT_PERMISSIONS if file.permissions is None else file.permissions
    readable = bool(file.content.transmit_unencoded)  # somebody fills in what stands in there
    yield from _write(file.path, content, permissions, readable=readable)


def _write(
    path: str, content: bytes, permissions: int = _DEFAULT_PERMISSIONS, *, readable: bool = False
) -> Iterator[str]:
    """The file has its permissions before it has any content."""
    yield f"mkdir -p {shlex.quote(posixpath.dirname(path))}"
    yield f"install -m {permissions:04o} /dev/null {shlex.quote(path)}"
    if readable:
        yield f"printf %s {shlex.quote(content.decode())} > {shlex.quote(path)}"
    else:
        yield f"echo {Base64.encode_bytes(content)} | base64 -d > {shlex.quote(path)}"


def _guarded(host_name: str | None, lines: Iterable[str]) -> list[str]:
    """The lines, on one host only where one is named."""
    if not host_name:
        return list(lines)
    return [f'if [ "$(hostname)" = {shlex.quote(host_name)} ]; then', *lines, "fi"]


def _unit_files(unit: Unit) -> Iterator[str]:
    path = f"{_UNITS}/{unit.name}"
    if unit.content:
        yield from _write(path, unit.content.encode())
    for drop_in in unit.drop_ins:
        yield from _write(f"{path}.d/{drop_in.name}", drop_in.content.encode())


def _start(unit: Unit) -> Iterator[str]:
    name = shlex.quote(unit.name)
    enabled = unit.enable is not False
    yield f"systemctl {'enable' if enabled else 'disable'} {name}"
    stopped = not enabled or unit.command == "stop"
    yield f"systemctl {'stop' if stopped else 'restart --no-block'} {name}"
