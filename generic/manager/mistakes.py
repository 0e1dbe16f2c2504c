"""Mistakes in an actuator's class that type checkers or Python alone do not report."""

from collections.abc import Callable, Collection, Iterator, Mapping
from inspect import (
    get_annotations,
    isasyncgenfunction,
    iscoroutinefunction,
    isfunction,
    isgeneratorfunction,
    signature,
)
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from actuator.interface import (
    Actuator,
    Context,
    Permission,
    ProviderConfig,
    SeedObjects,
    config_class,
    innermost,
    kind_of,
    object_class,
)
from actuator.meta import Kind, Object, Raw
from actuator.places import place_of
from actuator.qualified import require_qualified
from actuator.suggestions import closest
from generic.controller.watch import Watch
from generic.reconciler.stripping import OUT_OF_SCOPE

_SIMILARITY = 0.85
"""Minimum similarity of a misspelt name: "extrnal_resources" is one, "reconcile_vpc" is not."""
_VERBS = frozenset(
    {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
)
"""Source: Kubernetes documentation, "Authorization" (request verbs)."""
_VERB_SIMILARITY = 0.66
"""The same of a verb: "gte" is a misspelt "get", "sign" and "bind" are verbs of other APIs."""
_FRAMEWORK = frozenset({"abc", "actuator", "builtins", "generic", "typing"})
_METHODS = [name for name, of in vars(Actuator).items() if isfunction(of) and name[0] != "_"]
_YIELDING = frozenset({"external_resources", "validate"})
_LISTS: dict[str, tuple[Any, str]] = {
    "permissions": (Permission, 'Resource("v1", "configmaps").permission("get")'),
    "seed_objects": (
        SeedObjects,
        'SeedObjects(Resource("machine.sapcloud.io/v1alpha1", "machines"))',
    ),
    "watches": (Watch, "generic.owns(...)"),
    "predicates": (Callable, "generation_changed"),
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


def check_overrides(cls: type) -> None:
    """Raise TypeError, with file and line, for a name that overrides nothing, but almost does."""
    for name, problem in _misspelt(cls):
        place = place_of(vars(cls).get(name), cls)
        raise TypeError(f"{cls.__name__}.{name} {problem}{place}")


def _problems(actuator: Any) -> _Problems:
    """Yield the problems of an actuator's class; after the first, others may be wrong."""
    if not isinstance(actuator, Actuator):
        hint = "; add an instance of it" if isinstance(actuator, type) else ""
        yield f"expected an Actuator, got {actuator!r}{hint}", actuator
    for item in (actuator, innermost(actuator)):
        cls = type(item)
        for name, problem in (*_methods(item), *_misspelt(cls), *_attributes(item)):
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
        if group.resource.namespaced and not kind.KIND.namespaced:
            yield OUT_OF_SCOPE.format(kind.KIND.name, group.resource), None
    if kind.__module__.partition(".")[0] not in _FRAMEWORK:
        yield from _of_fields(kind)
    yield from _of_config(innermost(actuator), config_class(actuator), kind)


def _of_config(actuator: Actuator[Any], config: Any, kind: type[Object]) -> _Problems:
    declared = f"Actuator[{kind.__name__}, {getattr(config, '__name__', config)}]"
    for name in _METHODS:
        annotated = _configuration(getattr(type(actuator), name))
        if annotated not in (config, None, Any):
            told = f"has a Context[{annotated.__name__}], but the class is derived from {declared}"
            yield f"{type(actuator).__name__}.{name} {told}; use one configuration in both", None
    if config is None or config == Raw:
        return
    if not (isinstance(config, type) and issubclass(config, ProviderConfig)):
        yield f"{declared}: expected a subclass of ProviderConfig, got {config!r}", None
    yield from _of_fields(config)
    spec = get_type_hints(kind).get("spec")
    fields = attrs.fields_dict(spec) if spec and attrs.has(spec) else {}
    if not {"provider_config", "pools"} & fields.keys():
        remedy = f"remove {config.__name__} from {declared}, or derive the spec from DefaultSpec"
        yield f"{kind.KIND.name} has no spec.providerConfig; {remedy}", None


def _configuration(method: Any) -> Any:
    """Return the configuration that a method's Context is annotated with, None if that is open."""
    try:
        hints = get_type_hints(method).values()
    except Exception:  # a name that exists only for type checkers
        return None
    given = [get_args(hint)[0] for hint in hints if get_origin(hint) is Context]
    return next((item for item in given if isinstance(item, type)), None)


def _of_fields(cls: type) -> _Problems:
    from generic.manager.configmistakes import mistakes  # with the first of these classes

    for subject, problem in mistakes(cls):
        yield f"{subject.__name__}: {problem}", subject


def _methods(actuator: Actuator[Any]) -> Iterator[tuple[str, str]]:
    """Yield each method that cannot be called like the overridden one."""
    hooks = _hooks(type(actuator))
    returning = {*_METHODS} - _YIELDING | {name for name, is_none in hooks.items() if is_none}
    for name in (*_METHODS, *hooks):
        method = getattr(actuator, name)
        if iscoroutinefunction(method) or isasyncgenfunction(method):
            yield name, "is async, but actuators run in worker threads; remove async"
        elif isgeneratorfunction(method) and name in returning:
            yield name, "yields, so that a call runs none of its code; return instead"
    for name in _METHODS:
        method = getattr(actuator, name)
        _, *wanted = signature(getattr(Actuator, name)).parameters
        try:
            signature(method).bind(*wanted)
        except TypeError as error:
            called = f"cannot be called with ({', '.join(wanted)})"
            yield name, f"{called}: {error}; correct its parameters"
        except ValueError:
            continue  # a callable without a signature


def _hooks(cls: type) -> dict[str, bool]:
    """Return the methods of generic actuators among its bases, and whether they return None."""
    return {
        name: of.__annotations__.get("return") is None
        for base in reversed(cls.__mro__)
        if base.__module__.partition(".")[0] in _FRAMEWORK
        for name, of in vars(base).items()
        if isfunction(of) and name[0] != "_" and name not in _METHODS
    }


def _attributes(actuator: Actuator[Any]) -> Iterator[tuple[str, str]]:
    for name in ("permissions", "seed_objects", "watches"):
        for problem in _wrong_entries(name, getattr(actuator, name)):
            yield name, problem
    yield from _misspelt_verbs(actuator.permissions)
    if actuator.leaves_nothing and _declares_resources(actuator):
        yield "external_resources", "contradicts leaves_nothing; remove one of them"
    finalizer: Any = actuator.finalizer
    if not isinstance(finalizer, str):
        yield "finalizer", f"is {finalizer!r}; set a text, such as 'example.org/cleanup'"


def _declares_resources(actuator: Actuator[Any]) -> bool:
    author = type(innermost(actuator))
    return author.external_resources is not Actuator.external_resources


def _wrong_entries(name: str, declared: Any) -> Iterator[str]:
    """Yield each entry of another class, or a value that is no list."""
    cls, example = _LISTS[name]
    is_list = isinstance(declared, Collection) and not isinstance(declared, str)
    wrong = [item for item in declared if not isinstance(item, cls)] if is_list else [declared]
    for item in wrong:
        yield f"has {item!r}; expected a list of {cls.__name__}, such as [{example}]"


def _misspelt_verbs(permissions: Any) -> Iterator[tuple[str, str]]:
    """Yield each verb that is almost one of the API; other APIs have verbs of their own."""
    entries = permissions if isinstance(permissions, Collection) else ()
    for item in (item for item in entries if isinstance(item, Permission)):
        for verb in {*item.verbs} - _VERBS:
            if meant := closest(verb, _VERBS, _VERB_SIMILARITY):
                what = f"has the verb {verb!r} for {item.resource.plural}"
                yield "permissions", f"{what}; did you mean {meant!r}?"


def _misspelt(cls: type) -> Iterator[tuple[str, str]]:
    """Yield each public name of an author's class that overrides nothing, but almost does."""
    for number, part in enumerate(cls.__mro__):
        if part.__module__.partition(".")[0] in _FRAMEWORK:
            continue
        known = cls.__mro__[:number:-1]
        bases: dict[str, Any] = dict.fromkeys(n for base in known for n in get_annotations(base))
        bases |= {n: v for base in known for n, v in vars(base).items()}
        for name, value in vars(part).items():
            same = [n for n, v in bases.items() if n[0] != "_" and callable(v) is callable(value)]
            found = None if name[0] == "_" else closest(name, same, _SIMILARITY)
            if found is not None and found not in name:  # "deleted", "pre_delete": other words
                yield name, f"overrides nothing; did you mean {found!r}?"
