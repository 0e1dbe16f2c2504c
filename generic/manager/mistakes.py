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
    kind_of,
    object_class,
)
from actuator.meta import Kind, Object
from actuator.places import place_of
from actuator.qualified import require_qualified
from actuator.suggestions import closest
from generic.controller.watch import Watch
from generic.reconciler.deletion.escalation import Escalation
from generic.reconciler.stripping import OUT_OF_SCOPE

_SIMILARITY = 0.85
"""Minimum similarity of a misspelt name: "extrnal_resources" is one, "reconcile_vpc" is not."""
_FRAMEWORK = frozenset({"abc", "actuator", "builtins", "generic", "typing"})
_METHODS = [name for name, of in vars(Actuator).items() if isfunction(of) and name[0] != "_"]
_YIELDING = frozenset({"external_resources", "validate"})
_LISTS: dict[str, tuple[Any, str]] = {
    "permissions": (
        Permission,
        'Permission(api_version="v1", resource="configmaps", verbs=["get"])',
    ),
    "seed_objects": (SeedObjects, 'SeedObjects("machine.sapcloud.io/v1alpha1", "machines")'),
    "watches": (Watch, "generic.owns(...)"),
    "predicates": (Callable, "generation_changed"),
    "escalations": (Escalation, "Escalation(after=3600, then=Then.GIVE_UP)"),
    "type": (str, '"aws"'),
}
"""The class of the entries of each list that an author declares or passes, with an example."""
_Problems = Iterator[tuple[str, object]]
"""Each problem with its class or method."""


def check_actuator(who: str, actuator: object) -> type[Object]:
    """Return the class of the objects. Raises TypeError, with file and line, for a mistake."""
    for problem, subject in _problems(actuator):
        raise TypeError(f"{who}: {problem}{place_of(subject, type(actuator))}")
    return object_class(actuator)  # type: ignore[arg-type]


def check_arguments(who: str, given: Mapping[str, Any], workers: object) -> None:
    """Raise TypeError or ValueError for an argument of `Manager.add` with a wrong value."""
    for name, value in given.items():
        for problem in _wrong_entries(name, value):
            raise TypeError(f"{who}: {name}=… {problem}")
    if workers is not None and not (isinstance(workers, int) and workers > 0):
        raise ValueError(f"{who}: workers={workers!r}: set a number of at least 1")


def check_fields(who: str, cls: type) -> None:
    """Raise TypeError, with file and line, for a mistake in a class whose objects users write."""
    for problem, subject in _of_fields(cls):
        raise TypeError(f"{who}: {problem}{place_of(subject)}")


def _problems(actuator: Any) -> _Problems:
    """Yield the problems of an actuator's class; after the first, others may be wrong."""
    if not isinstance(actuator, Actuator):
        hint = "; add an instance of it" if isinstance(actuator, type) else ""
        yield f"expected an Actuator, got {actuator!r}{hint}", actuator
    for one in (actuator, innermost(actuator)):
        cls = type(one)
        for name, problem in (*_methods(one), *_misspelt(cls), *_attributes(one)):
            found = vars(cls).get(name, cls)
            yield f"{cls.__name__}.{name} {problem}", found
    try:
        kind = object_class(actuator)
    except TypeError as error:
        yield str(error), None
    if not isinstance(getattr(kind, "KIND", None), Kind):
        yield f"{kind.__name__} has no KIND; declare KIND: ClassVar[Kind] = own_kind(…)", kind
    try:
        require_qualified(kind_of(actuator).finalizer)
    except ValueError as error:
        yield str(error), None
    for group in actuator.seed_objects:
        if group.namespaced and not kind.KIND.namespaced:
            yield OUT_OF_SCOPE.format(kind.KIND.name, group.resource), None
    if kind.__module__.partition(".")[0] not in _FRAMEWORK:
        yield from _of_fields(kind)
    if actuator.provider_config is not None:
        yield from _of_config(actuator.provider_config, kind)


def _of_config(config: Any, kind: type[Object]) -> _Problems:
    if not (isinstance(config, type) and issubclass(config, ProviderConfig)):
        yield f"provider_config: expected a subclass of ProviderConfig, got {config!r}", None
    yield from _of_fields(config)
    spec = get_type_hints(kind).get("spec")
    fields = attrs.fields_dict(spec) if spec and attrs.has(spec) else {}
    if not {"provider_config", "pools"} & fields.keys():
        remedy = "remove provider_config, or derive the spec from DefaultSpec"
        yield f"{kind.KIND.name} has no spec.providerConfig; {remedy}", None


def _of_fields(cls: type) -> _Problems:
    from generic.manager.configmistakes import mistakes  # with the first of these classes

    for subject, problem in mistakes(cls):
        yield f"{subject.__name__}: {problem}", subject


def _methods(actuator: Actuator[Any]) -> Iterator[tuple[str, str]]:
    """Yield each method that cannot be called like the overridden one."""
    for name in _METHODS:
        method = getattr(actuator, name)
        if iscoroutinefunction(method) or isasyncgenfunction(method):
            yield name, "is async, but actuators run in worker threads; remove async"
        elif isgeneratorfunction(method) and name not in _YIELDING:
            yield name, "yields, so that a call runs none of its code; return instead"
        _, *wanted = signature(getattr(Actuator, name)).parameters
        try:
            signature(method).bind(*wanted)
        except TypeError as error:
            called = f"cannot be called with ({', '.join(wanted)})"
            yield name, f"{called}: {error}; correct its parameters"
        except ValueError:
            continue  # a callable without a signature


def _attributes(actuator: Actuator[Any]) -> Iterator[tuple[str, str]]:
    for name in ("permissions", "seed_objects", "watches"):
        for problem in _wrong_entries(name, getattr(actuator, name)):
            yield name, problem
    finalizer: Any = actuator.finalizer
    if not isinstance(finalizer, str):
        yield "finalizer", f"is {finalizer!r}; set a text, such as 'example.org/cleanup'"


def _wrong_entries(name: str, declared: Any) -> Iterator[str]:
    """Yield each entry of another class, or a value that is no list."""
    cls, example = _LISTS[name]
    is_list = isinstance(declared, Collection) and not isinstance(declared, str)
    wrong = [one for one in declared if not isinstance(one, cls)] if is_list else [declared]
    for one in wrong:
        yield f"has {one!r}; expected a list of {cls.__name__}, such as [{example}]"


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
