"""The target of a command: by default the `actuator dev` that runs in this directory."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from actuator.errors import ConfigurationError
from generic.kube.access import NoKubeconfig
from generic.kube.client import HttpClient, connect
from generic.kube.printable import echo
from generic.library.programs.cache import open_lock, try_lock
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.tools.cli.load import load_manager

_FILE = Path(".actuator-dev")
"""Locked while the command runs."""


class DevelopmentTarget(msgspec.Struct, frozen=True, kw_only=True):
    """An extension and a cluster, as flags select them."""

    extension: str | None = None
    types: tuple[str, ...] = ()
    admission: str | None = None
    """MODULE:OBJECT, "none", or None for the module `admission` of the extension."""
    kubeconfig: Path | None = None
    context: str | None = None
    master: str = ""

    def connect(self) -> HttpClient:
        """Return a client for the cluster. Raises ConfigurationError."""
        try:
            return connect(self.kubeconfig, self.context, server=self.master)
        except NoKubeconfig as error:
            more = "" if self.kubeconfig else ", or start `actuator dev` in this directory"
            raise ConfigurationError(f"{error}{more}") from None

    def manager(self, options: Options | None = None) -> Manager:
        """Return a manager with the extension, if there is one. Raises ConfigurationError."""
        if self.extension is None:
            return Manager(options)
        return load_manager(self.extension, self.types, options)


@contextmanager
def announced() -> Iterator[Callable[[DevelopmentTarget], object]]:
    """Yield a function that lets other commands find a target until the context is left.

    Raises ConfigurationError if another process does so in this directory.
    """
    with open_lock(_FILE) as handle:
        if not try_lock(handle) or not os.fstat(handle).st_nlink:  # it ended, with its file
            raise ConfigurationError("actuator dev already runs in this directory; stop it first")
        try:
            yield _announce
        finally:
            _FILE.unlink(missing_ok=True)


def _announce(target: DevelopmentTarget) -> None:
    try:
        _FILE.write_bytes(msgspec.json.encode(target, enc_hook=str))
    except OSError as error:
        why = f"cannot write {_FILE.absolute()}: {error.strerror}"
        raise ConfigurationError(f"{why}; free space, or run in another folder") from error


def select(asked: DevelopmentTarget, *, required: bool = False) -> DevelopmentTarget:
    """Return the target; without a cluster, that of the `actuator dev` in this directory, if any.

    Raises UsageError for a type without an extension, and ConfigurationError without a target
    that is `required`.
    """
    if asked.types and not asked.extension:
        raise click.UsageError("--type requires --extension")
    if asked.kubeconfig or asked.context or asked.master:
        return asked
    if not (found := _announced()):
        if required:
            why = "no `actuator dev` runs in this directory; start it, or set --kubeconfig"
            raise ConfigurationError(why)
        return asked
    echo("using the cluster of `actuator dev`; --kubeconfig selects another", err=True)
    extension = {"extension": asked.extension, "types": asked.types} if asked.extension else {}
    return msgspec.structs.replace(found, **extension)


def _announced() -> DevelopmentTarget | None:
    """Return the announced target, unless its process was killed or is of another user.

    Raises ConfigurationError if its cluster is still starting.
    """
    try:
        with _FILE.open("r+b") as file:
            if try_lock(file.fileno()) or os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            if not (text := file.read()):
                why = "`actuator dev` is still starting in this directory; wait for its addresses"
                raise ConfigurationError(f"{why}, or set --kubeconfig")
            return msgspec.json.decode(
                text, type=DevelopmentTarget, dec_hook=lambda cls, text: cls(text)
            )
    except (OSError, msgspec.MsgspecError):
        return None
