"""The state of this process that tests share: taken before a test or a command, restored after it.

A command that runs in this process changes state that would end with its own process: it loads
an author's modules, extends `sys.path`, configures logging, and handles signals. A later test that
finds a module of the same name in `sys.modules` gets the wrong one.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from actuator.shared_names import share_names

__all__ = ["isolated", "unchanged"]

_INSTALLED = tuple(
    f"{folder}{os.sep}" for folder in (Path(__file__).parents[3], sys.prefix, sys.base_prefix)
)
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1)


def _is_installed(path: str) -> bool:
    """Whether it is ours, a dependency's or Python's; tests write their modules elsewhere."""
    return path.startswith(_INSTALLED)


def _is_of_a_test(name: str) -> bool:
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    return not all(_is_installed(path) for path in ([file] if file else _folders_of(module)))


def _folders_of(module: ModuleType | None) -> list[str]:
    """Return the folders of a package without `__init__.py`.

    Not by its own iterator, which asks the package that contains it and fails if that is unloaded.
    """
    path = getattr(module, "__path__", ())
    return [str(folder) for folder in getattr(path, "_path", path)]


def _finders() -> list[Any]:
    """Without those of the package `six`, which each copy of it installs when it is imported."""
    return [item for item in sys.meta_path if type(item).__name__ != "_SixMetaPathImporter"]


def _set_finders(finders: list[Any]) -> None:
    sys.meta_path[:] = [*finders, *(item for item in sys.meta_path if item not in _finders())]


def _set_path(entries: list[str]) -> None:
    sys.path[:] = entries
    share_names()


def _environment() -> dict[str, str]:
    """Without pytest's own variables, which name the test and its phase."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}


def _set_environment(variables: dict[str, str]) -> None:
    for key in _environment().keys() - variables.keys():
        del os.environ[key]
    os.environ.update(variables)


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "a deleted directory"


def _handlers() -> list[logging.Handler]:
    """Without those of pytest, which it replaces in each phase of a test."""
    handlers = logging.getLogger().handlers
    return [handler for handler in handlers if not type(handler).__module__.startswith("_pytest")]


def _set_handlers(handlers: list[logging.Handler]) -> None:
    root = logging.getLogger()
    ours = _handlers()
    root.handlers[:] = [*handlers, *(handler for handler in root.handlers if handler not in ours)]


def _signals() -> dict[signal.Signals, Any]:
    return {number: signal.getsignal(number) for number in _SIGNALS}


def _set_signals(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _collection() -> tuple[bool, tuple[int, int, int]]:
    return gc.isenabled(), gc.get_threshold()


def _set_collection(settings: tuple[bool, tuple[int, int, int]]) -> None:
    is_enabled, thresholds = settings
    gc.set_threshold(*thresholds)
    (gc.enable if is_enabled else gc.disable)()


_STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "sys.path": (lambda: [*sys.path], _set_path),
    "sys.meta_path": (_finders, _set_finders),
    "sys.path_hooks": (lambda: [*sys.path_hooks], lambda value: _assign(sys.path_hooks, value)),
    "sys.argv": (lambda: [*sys.argv], lambda value: _assign(sys.argv, value)),
    "sys.dont_write_bytecode": (
        lambda: sys.dont_write_bytecode,
        lambda value: setattr(sys, "dont_write_bytecode", value),
    ),
    "the recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    "the working directory": (_folder, os.chdir),
    "os.environ": (_environment, _set_environment),
    "the handlers of the root logger": (_handlers, _set_handlers),
    "the level of the root logger": (
        lambda: logging.getLogger().level,
        lambda value: logging.getLogger().setLevel(value),
    ),
    "the signal handlers": (_signals, _set_signals),
    "the garbage collector": (_collection, _set_collection),
}
"""The functions that read and write each part of the state, besides the modules."""


def _assign(entries: list[Any], value: list[Any]) -> None:
    entries[:] = value


def _difference(before: Any, now: Any) -> str:
    """Return the differences; of a mapping the keys alone, because a value can be a secret."""
    if isinstance(before, dict):
        keys = before.keys() | now.keys()
        return ", ".join(sorted(str(key) for key in keys if before.get(key) != now.get(key)))
    if isinstance(before, list):
        missing, added = (
            [item for item in a if item not in b] for a, b in ((before, now), (now, before))
        )
        return f"added {added}, removed {missing}"
    return f"{before!r} became {now!r}"


class Snapshot:
    """The state at this moment."""

    def __init__(self) -> None:
        self._state = {name: read() for name, (read, _) in _STATE.items()}
        self._modules = dict(sys.modules)

    def restore(self) -> list[str]:
        """Restore the state; return the differences."""
        changes = [*self._restore_modules()]
        for name, (read, write) in _STATE.items():
            if (now := read()) != self._state[name]:
                changes.append(f"{name}: {_difference(self._state[name], now)}")
                write(self._state[name])
        return changes

    def _restore_modules(self) -> Iterator[str]:
        """Forget the modules that tests have written, and put back those that were replaced."""
        for name in sys.modules.keys() - self._modules.keys():
            if sys.modules.get(name) is None or _is_of_a_test(name):  # None: it was hidden
                yield f"sys.modules: {name} is left"
                _forget(name)
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                yield f"sys.modules: {name} is another one, or missing"
                sys.modules[name] = module


def _forget(name: str) -> None:
    """Unload a module, as an attribute of its package too."""
    module = sys.modules.pop(name, None)
    package, _, attribute = name.rpartition(".")
    if module and getattr(sys.modules.get(package), attribute, None) is module:
        delattr(sys.modules[package], attribute)


@contextmanager
def isolated() -> Iterator[None]:
    """Begin without the modules of any test, as a new process does; restore the state at the end.

    Python lists a folder again only if the time of its last change differs, which file systems
    store in ticks of some milliseconds: a module written right after a listing is not found.
    """
    before = Snapshot()
    for name in [module for module in before._modules if _is_of_a_test(module)]:
        _forget(name)
    for folder in [item for item in sys.path_importer_cache if not _is_installed(item)]:
        del sys.path_importer_cache[folder]
    try:
        yield
    finally:
        before.restore()


@contextmanager
def unchanged() -> Iterator[None]:
    """Restore the state at the end. Raises AssertionError if something changed it."""
    before = Snapshot()
    yield
    changes = before.restore()
    assert not changes, "later tests would find what was changed:\n" + "\n".join(changes)
