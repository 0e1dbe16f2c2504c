"""Loads the object that MODULE:OBJECT on the command line names."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from actuator.errors import ActuatorError, ConfigurationError
from actuator.interface import Actuator, ProviderConfig
from actuator.meta import Object, Raw
from actuator.shared_names import share_names
from actuator.suggestions import did_you_mean
from generic.kube.errorinfo import authors_code, where_raised
from generic.kube.plain import json_text, plain
from generic.kube.printable import echo
from generic.manager.flags import FLAGS
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.tools.extras import installation

if TYPE_CHECKING:
    from generic.testing.rehearsal import CombinedRehearsal

F = TypeVar("F", bound=Callable[..., None])
types_option = click.option(
    "--type", "types", multiple=True, help="Type, if the extension is an Actuator."
)


def _output_option(*formats: str) -> Callable[[F], F]:
    choice = click.Choice(formats)
    return click.option("--output", "-o", type=choice, default="table", show_default=True)


output_option = _output_option("table", "json", "yaml")
list_option = _output_option("table", "wide", "name", "json", "yaml")


def counted(number: int, noun: str) -> str:
    """Return the number with its noun: "1 orphan", "2 orphans"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def print_list(
    output: str, data: Raw, names: Sequence[str], table: Callable[[], str], none: str = ""
) -> None:
    """Print a list in a format of `list_option`; `none` is the text of an empty one."""
    if output in ("json", "yaml"):
        print_as(output, data)
    elif output == "name":
        for name in names:
            echo(name)
    elif names or none:
        echo(table() if names else none, lines=True)


def print_as(output: str, data: Any) -> None:
    """Print plain data and objects as JSON or YAML."""
    from generic.tools.packaging.chart import yaml_text

    text = yaml_text(plain(data)) if output == "yaml" else json_text(data)
    echo(text.rstrip("\n"), lines=True)


_REHEARSALS = ("extensions.aws.rehearsal:AwsRehearsal",)


def load(reference: str) -> Any:
    """Return the object. Raises ConfigurationError if it does not exist."""
    module_name, colon, path = reference.partition(":")
    is_file = "/" in module_name or module_name.endswith(".py")
    if not colon or not module_name or not path or is_file:
        raise ConfigurationError(
            f"{reference!r}: expected MODULE:OBJECT, for example extensions.aws:extension"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last: a file of this folder replaces no module of ours
        share_names()
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        remedy = installation(error.name) or "install it, or run in its folder"
        raise ConfigurationError(
            f"{reference}: module {error.name!r} not found; {remedy}"
        ) from error
    except ActuatorError as error:  # such as a missing extra
        raise ConfigurationError(f"{reference}: {error}") from error
    except SystemExit as error:
        where = where_raised(error)
        why = f"ended the process with {error.code!r}; start a program with python{where}"
        raise ConfigurationError(f"{reference}: importing {module_name} {why}") from error
    except Exception as error:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        why = f"{type(error).__name__}: {text}{where_raised(error)}"
        raise ConfigurationError(f"{reference}: importing {module_name} failed: {why}") from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            hint = did_you_mean(name, dir(found))
            raise ConfigurationError(f"{reference}: {module_name} has no {path!r}{hint}") from None
    return found


def load_kind(reference: str) -> type[Object]:
    """Return the class of a kind. Raises ConfigurationError."""
    found = load(reference)
    if not (isinstance(found, type) and issubclass(found, Object) and hasattr(found, "KIND")):
        raise ConfigurationError(f"{reference}: expected a subclass of Object with a KIND")
    return found


def load_rehearsals(references: Sequence[str]) -> "CombinedRehearsal":
    """Return the rehearsals of these classes, combined. Raises ConfigurationError."""
    from generic.testing.rehearsal import CombinedRehearsal, Rehearsal

    parts = []
    references = references or _REHEARSALS
    for reference in references:
        cls = load(reference)
        if not (isinstance(cls, type) and issubclass(cls, Rehearsal)):
            raise ConfigurationError(
                f"{reference}: expected a rehearsal MODULE:CLASS, for example {_REHEARSALS[0]}"
            )
        with authors_code(reference):
            parts.append(cls())
    with authors_code(", ".join(references)):  # attributes that are missing or have wrong types
        return CombinedRehearsal(parts)


def with_flags(*names: str) -> Callable[[F], F]:
    """Add the manager's flags of these names to a command."""

    def decorate(function: F) -> F:
        flags = [flag for flag in FLAGS if flag.name in names]
        known = getattr(function, "__click_params__", [])  # as in click's own decorators
        function.__click_params__ = [*known, *flags[::-1]]  # type: ignore[attr-defined]
        return function

    return decorate


def load_manager(reference: str, types: tuple[str, ...], options: Options | None = None) -> Manager:
    """Return a manager with an extension: a function that takes the manager, or an Actuator.

    Raises ConfigurationError.
    """
    found = load(reference)
    manager = Manager(options)
    with authors_code(reference):
        if isinstance(found, type) and issubclass(found, Actuator):
            found = found()
        if isinstance(found, Actuator):
            manager.add(found, type=types)
        elif isinstance(found, type) and issubclass(found, ProviderConfig):
            raise TypeError("expected an extension, got a configuration; name its Actuator")
        elif iscoroutinefunction(found):
            raise TypeError("async functions are not supported; remove async")
        elif isinstance(found, type) or not callable(found):
            got = f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
            raise TypeError(f"expected an Actuator or a function of a Manager, got {got}")
        else:
            _check_takes_manager(found)
            found(manager)
    if not (manager.registrations or manager.webhooks or manager.admissions):
        raise ConfigurationError(f"{reference}: the function added no actuator to the manager")
    return manager


def _check_takes_manager(function: Callable[..., object]) -> None:
    try:
        signature(function).bind(None)
    except TypeError:
        raise TypeError("the function must take one argument, the Manager") from None
