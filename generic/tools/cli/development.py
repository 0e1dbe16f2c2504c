"""The `actuator dev` that runs in this directory: other commands find its cluster without flags."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from actuator.errors import ConfigurationError
from generic.kube.client import HttpClient, connect
from generic.kube.printable import echo
from generic.library.programs.cache import open_lock, try_lock
from generic.library.programs.errors import EnvtestError

_FILE = Path(".actuator-dev")
"""Locked while the command runs."""


class Development(msgspec.Struct, frozen=True):
    """The extension under development, and the administrator's access to its cluster."""

    extension: str
    types: tuple[str, ...]
    kubeconfig: Path | None
    context: str | None


@contextmanager
def announced() -> Iterator[Callable[[Development], object]]:
    """Yield a function that lets other commands find it until the context is left.

    Raises ConfigurationError if it already runs in this directory.
    """
    with open_lock(_FILE) as handle:
        if not try_lock(handle):
            raise ConfigurationError("actuator dev already runs in this directory; stop it first")
        try:
            yield lambda found: _FILE.write_bytes(msgspec.json.encode(found, enc_hook=str))
        finally:
            _FILE.unlink()


def current(
    kubeconfig: Path | None = None, context: str | None = None, master: str = ""
) -> Development | None:
    """Return the one that runs in this directory; None without, or if a flag selects a cluster."""
    if kubeconfig or context or master or not _FILE.exists():
        return None
    try:
        with open_lock(_FILE) as handle:
            if try_lock(handle) or os.fstat(handle).st_uid != os.getuid():
                return None  # it was killed, or is of another user
            return msgspec.json.decode(
                _FILE.read_bytes(), type=Development, dec_hook=lambda cls, text: cls(text)
            )
    except (EnvtestError, OSError, msgspec.MsgspecError):
        return None


def connect_seed(kubeconfig: Path | None, context: str | None, master: str = "") -> HttpClient:
    """Return a client for the cluster that the flags select, by default that of `actuator dev`."""
    if found := current(kubeconfig, context, master):
        echo("using the cluster of `actuator dev`; --kubeconfig selects another", err=True)
        return connect(found.kubeconfig, found.context)
    return connect(kubeconfig, context, server=master)
