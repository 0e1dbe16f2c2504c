"""Mistakes in an actuator's class that type checkers or Python alone do not report."""

from collections.abc import Callable, Collection, Iterator, Mapping
from inspect import (
    isasyncgenfunction,
    iscoroutinefunction,
    isfunction,
    isgeneratorfunction,
    signature,
)
from typing import Any, get_type_hints

import attrs

from actuator.interface import (
    Actuator,
    Permission,
    ProviderConfig,
    SeedObjects,
    innermost,
    object_class,
)
from actuator.meta import Kind, Object
from actuator.places import place_of
from actuator.suggestions import closest
from generic.controller.watch import Watch
from generic.reconciler.deletion.escalation import Escalation

_SIMILARITY = 0.85
"""Minimum similarity of a misspelt name: "extrnal_resources" is one, "reconcile_vpc" is not."""
_FRAMEWORK = frozenset({"abc", "actuator", "builtins", "generic", "typing"})
_METHODS = {
    name: list(signature(f).parameters)
    for name, f in vars(Actuator).items()
    if isfunction(f) and name[0] != "_"
}
"""The parameters of each method."""
_YIELDING = frozenset({"external_resources", "validate"})
_LISTS: dict[str, tuple[type, str]] = {
    "permissions": (
        Permission,
        'Permission(api_version="v1", resource="configmaps", verbs=["get"])',
    ),
    "seed_objects": (SeedObjects, 'SeedObjects("machine.sapcloud.io/v1alpha1", "machines")'),
    "watches": (Watch, "generic.owns(...)"),
    "predicates": (Callable, "generation_changed"),  # type: ignore[dict-item]
    "escalations": (Escalation, "Escalation(after=3600, then=Then.GIVE_UP)"),
}
"""The class of the entries of each list that an author declares or passes, with an example."""


def check_class(who: str, actuator: object) -> None:
    """Raise TypeError, with file and line, for the first mistake in the class of an actuator."""
    if not isinstance(actuator, Actuator):
        hint = "; add an instance of it" if isinstance(actuator, type) else ""
        place = place_of(actuator, type(actuator))
        raise TypeError(f"{who}: expected an Actuator, got {actuator!r}{hint}{place}")
    for one in (actuator, innermost(actuator)):
        cls = type(one)
        for name, problem in (*_methods(one), *_misspelt(cls), *_lists(one)):
            found = getattr(cls, name)
            place = place_of(cls if name not in vars(cls) else found, cls)
            raise TypeError(f"{who}: {cls.__name__}.{name} {problem}{place}")
    try:
        kind = object_class(actuator)
    except TypeError as error:
        raise TypeError(f"{who}: {error}{place_of(type(actuator))}") from None
    if not isinstance(getattr(kind, "KIND", None), Kind):
        remedy = "declare KIND: ClassVar[Kind] = own_kind(NAME, GROUP)"
        raise TypeError(f"{who}: {kind.__name__} has no KIND; {remedy}{place_of(kind)}")


def check_config(who: str, actuator: Actuator[Any], kind: type[Object]) -> None:
    """Raise TypeError for a mistake in the classes of a configuration or of an own kind."""
    if kind.__module__.partition(".")[0] not in _FRAMEWORK:
        check_fields(who, kind)
    config: Any = actuator.provider_config
    if config is None:
        return
    if not (isinstance(config, type) and issubclass(config, ProviderConfig)):
        place = place_of(config, type(actuator))
        raise TypeError(
            f"{who}: provider_config: expected a subclass of ProviderConfig, got {config!r}{place}"
        )
    check_fields(who, config)
    spec = get_type_hints(kind).get("spec")
    fields = attrs.fields_dict(spec) if spec and attrs.has(spec) else {}
    if not {"provider_config", "pools"} & fields.keys():
        raise TypeError(
            f"{who}: {kind.KIND.name} has no spec.providerConfig; remove provider_config, or "
            f"derive the spec from DefaultSpec{place_of(type(actuator))}"
        )


def check_fields(who: str, cls: type) -> None:
    """Raise TypeError for a mistake in a class whose objects users write."""
    from generic.manager.configmistakes import mistakes  # with the first of these classes

    for subject, problem in mistakes(cls):
        raise TypeError(f"{who}: {subject.__name__}: {problem}{place_of(subject)}")


def _methods(actuator: Actuator[Any]) -> Iterator[tuple[str, str]]:
    """Yield each method that cannot be called like the overridden one."""
    for name, (_, *wanted) in _METHODS.items():
        method = getattr(actuator, name)
        if iscoroutinefunction(method) or isasyncgenfunction(method):
            yield name, "is async, but actuators run in worker threads; remove async"
        elif isgeneratorfunction(method) and name not in _YIELDING:
            yield name, "yields, so that a call runs none of its code; return instead"
        try:
            signature(method).bind(*wanted)
        except TypeError as error:
            called = f"cannot be called with ({', '.join(wanted)})"
            yield name, f"{called}: {error}; correct its parameters"
        except ValueError:
            continue  # a callable without a signature


def _lists(of: Actuator[Any] | Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each declared list that is none, or has an entry of another class."""
    for name, (cls, example) in _LISTS.items():
        declared: Any = of.get(name, ()) if isinstance(of, Mapping) else getattr(of, name, ())
        is_list = isinstance(declared, Collection) and not isinstance(declared, str)
        wrong = [one for one in declared if not isinstance(one, cls)] if is_list else [declared]
        for one in wrong:
            yield name, f"has {one!r}; expected a list of {cls.__name__}, such as [{example}]"
    finalizer: Any = "" if isinstance(of, Mapping) else of.finalizer
    if not isinstance(finalizer, str):
        yield "finalizer", f"is {finalizer!r}; expected a text, such as 'example.org/cleanup'"


def check_arguments(who: str, **given: object) -> None:
    """Raise TypeError or ValueError for an argument of `Manager.add` with a wrong value."""
    for name, problem in _lists(given):
        raise TypeError(f"{who}: {name}=… {problem}")
    types = given["types"]
    if not (isinstance(types, Collection) and all(isinstance(one, str) for one in types)):
        raise TypeError(f"{who}: type={types!r}: set a text, or a list of texts")
    workers = given["workers"]
    if workers is not None and not (isinstance(workers, int) and workers > 0):
        raise ValueError(f"{who}: workers={workers!r}: set a number of at least 1")


def _misspelt(cls: type) -> Iterator[tuple[str, str]]:
    """Yield each public name of an author's class that overrides nothing, but almost does."""
    for number, part in enumerate(cls.__mro__):
        if part.__module__.partition(".")[0] in _FRAMEWORK:
            continue
        bases = {n: v for base in cls.__mro__[:number:-1] for n, v in vars(base).items()}
        for name, value in vars(part).items():
            same = [n for n, v in bases.items() if n[0] != "_" and callable(v) is callable(value)]
            found = None if name[0] == "_" else closest(name, same, _SIMILARITY)
            if found is not None and found not in name:  # "deleted", "pre_delete": other words
                yield name, f"overrides nothing; did you mean {found!r}?"
