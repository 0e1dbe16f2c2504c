"""Loads the object that MODULE:OBJECT on the command line names."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from actuator.errors import ConfigurationError
from actuator.interface import Actuator
from actuator.meta import Object
from actuator.shared_names import share_names
from generic.manager.flags import FLAGS
from generic.manager.manager import Manager
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal

F = TypeVar("F", bound=Callable[..., None])
types_option = click.option(
    "--type", "types", multiple=True, help="Type, if EXTENSION is an Actuator."
)
output_option = click.option(
    "--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True
)
_REHEARSALS = ("extensions.aws.rehearsal:AwsRehearsal",)


def load(reference: str) -> Any:
    """Return the object. Raises ConfigurationError if it does not exist."""
    module_name, colon, path = reference.partition(":")
    if not colon or not module_name or not path:
        raise ConfigurationError(
            f"{reference!r}: expected MODULE:OBJECT, for example extensions.aws:extension"
        )
    here = str(Path.cwd())
    if here not in sys.path:  # an author's module beside the command, as with python -m
        sys.path.insert(0, here)
        share_names()
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{reference}: module {error.name!r} not found; install it, or run in its folder"
        ) from error
    except Exception as error:
        raise ConfigurationError(
            f"{reference}: importing {module_name} failed: {type(error).__name__}: {error}"
        ) from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise ConfigurationError(f"{reference}: {module_name} has no {path!r}") from None
    return found


def load_kind(reference: str) -> type[Object]:
    """Return the class of a kind. Raises ConfigurationError."""
    found = load(reference)
    if not (isinstance(found, type) and issubclass(found, Object) and hasattr(found, "KIND")):
        raise ConfigurationError(f"{reference}: expected a subclass of Object with a KIND")
    return found


def load_rehearsals(references: Sequence[str]) -> CombinedRehearsal:
    """Return the rehearsals of these classes, combined. Raises ConfigurationError."""
    found = [(reference, load(reference)) for reference in references or _REHEARSALS]
    for reference, cls in found:
        if not (isinstance(cls, type) and issubclass(cls, Rehearsal)):
            raise ConfigurationError(
                f"{reference}: expected a rehearsal MODULE:CLASS, for example {_REHEARSALS[0]}"
            )
    return CombinedRehearsal([cls() for _, cls in found])


def with_flags(*names: str) -> Callable[[F], F]:
    """Add the manager's flags of these names to a command."""

    def decorate(function: F) -> F:
        flags = [flag for flag in FLAGS if flag.name in names]
        known = getattr(function, "__click_params__", [])  # as in click's own decorators
        function.__click_params__ = [*known, *flags[::-1]]  # type: ignore[attr-defined]
        return function

    return decorate


def populate(manager: Manager, reference: str, types: tuple[str, ...]) -> None:
    """Add an extension to the manager: a function that takes the manager, or an Actuator.

    Raises ConfigurationError.
    """
    found = load(reference)
    try:
        if isinstance(found, type) and issubclass(found, Actuator):
            found = found()
        if isinstance(found, Actuator):
            manager.add(found, type=types)
        elif callable(found):
            found(manager)
        else:
            raise TypeError(
                f"expected an Actuator or a function of a Manager, got {type(found).__name__}"
            )
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{reference}: {error}") from error
    if not manager.registrations:
        raise ConfigurationError(f"{reference}: the function added no actuator to the manager")
