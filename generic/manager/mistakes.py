"""Mistakes in an actuator's class that type checkers or Python alone do not report."""

from collections.abc import Iterator
from inspect import (
    getsourcefile,
    getsourcelines,
    isasyncgenfunction,
    iscoroutinefunction,
    isfunction,
    signature,
)
from typing import Any, get_type_hints

import attrs

from actuator.interface import Actuator, Permission, ProviderConfig, innermost
from actuator.meta import Object
from actuator.suggestions import closest

_SIMILARITY = 0.85
"""Minimum similarity of a misspelt name: "extrnal_resources" is one, "reconcile_vpc" is not."""
_FRAMEWORK = frozenset({"abc", "actuator", "builtins", "generic", "typing"})


def check_class(who: str, actuator: object) -> None:
    """Raise TypeError for another object, an async method, or a misspelt inherited name."""
    if not isinstance(actuator, Actuator):
        hint = "; add an instance of it" if isinstance(actuator, type) else ""
        raise TypeError(f"{who}: expected an Actuator, got {actuator!r}{hint}")
    for cls in (type(actuator), type(innermost(actuator))):
        for problem in (*_async(cls), *_misspelt(cls), *_parameters(cls), *_permissions(cls)):
            raise TypeError(f"{who}: {cls.__name__}.{problem}{_place(cls)}")


def check_config(who: str, actuator: Actuator[Any], kind: type[Object]) -> None:
    """Raise TypeError for a provider_config that cannot be decoded, or without a field for it."""
    config = actuator.provider_config
    if config is None:
        return
    from generic.manager.configmistakes import config_mistakes  # with the first configuration

    if not (isinstance(config, type) and issubclass(config, ProviderConfig)):
        raise TypeError(f"{who}: provider_config: expected a subclass of ProviderConfig")
    for cls, problem in config_mistakes(config):
        raise TypeError(f"{who}: {cls.__name__}: {problem}{_place(cls)}")
    spec = get_type_hints(kind).get("spec")
    fields = attrs.fields_dict(spec) if spec and attrs.has(spec) else {}
    if not {"provider_config", "pools"} & fields.keys():
        raise TypeError(
            f"{who}: {kind.KIND.name} has no spec.providerConfig; remove provider_config, or "
            "derive the spec from DefaultSpec"
        )


def _async(cls: type) -> Iterator[str]:
    for name in vars(Actuator):
        method = getattr(cls, name)
        if iscoroutinefunction(method) or isasyncgenfunction(method):
            yield f"{name} is async, but actuators run in worker threads; remove async"


def _parameters(cls: type) -> Iterator[str]:
    """Yield each method that cannot be called with the parameters of the overridden one."""
    for name, declared in vars(Actuator).items():
        if name.startswith("_") or not isfunction(declared):
            continue
        method = getattr(cls, name)
        wanted = list(signature(declared).parameters)
        try:
            signature(method).bind(*wanted)
        except TypeError as error:
            yield f"{name}({', '.join(wanted)}) cannot be called: {error}; correct its parameters"
        except ValueError:
            continue  # a callable without a signature


def _permissions(cls: Any) -> Iterator[str]:
    declared = cls.permissions
    if isinstance(declared, property):
        return
    for one in [declared] if isinstance(declared, str) else declared:
        if not isinstance(one, Permission):
            yield (
                f"permissions has {one!r}; expected Permission(api_version, resource, verbs), "
                'such as Permission("v1", "configmaps", ["get"])'
            )


def _place(cls: type) -> str:
    """Return the file and line of a class, if its source is available."""
    try:
        return f" ({getsourcefile(cls)}:{getsourcelines(cls)[1]})"
    except (OSError, TypeError):
        return ""


def _misspelt(cls: type) -> Iterator[str]:
    """Yield each public name of an author's class that overrides nothing, but almost does."""
    for number, part in enumerate(cls.__mro__):
        if part.__module__.partition(".")[0] in _FRAMEWORK:
            continue
        bases = {n: v for base in cls.__mro__[:number:-1] for n, v in vars(base).items()}
        for name, value in vars(part).items():
            same = [n for n, v in bases.items() if n[0] != "_" and callable(v) is callable(value)]
            found = None if name[0] == "_" else closest(name, same, _SIMILARITY)
            if found is not None and found not in name:  # "deleted", "pre_delete": other words
                yield f"{name} overrides nothing; did you mean {found!r}?"
