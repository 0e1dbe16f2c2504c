"""providerConfig: a user's configuration, decoded strictly; its problems are FieldProblems.

Gardener decodes it strictly too: unknown fields, and another apiVersion or kind than the declared
ones, are errors (`checking`). A null counts as absent. The rules of a class (`problems`) are only
for a generation that no reconciliation accepted before, so that a new rule stops no unchanged
shoot. Pure.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import attrs

from actuator.checking import MAX_PROBLEMS, check
from actuator.codec import decode, encode
from actuator.errors import DecodeError
from actuator.immutability import changes
from actuator.interface import FieldProblem, ProviderConfig, invalid
from actuator.meta import (
    LastOperationState,
    LastOperationType,
    Object,
    Raw,
    conditions_in,
    value_at,
)
from actuator.schema import comparable, json_schema

FIELD = "spec.providerConfig"
ACCEPTED = "ConfigurationAccepted"
"""The type of the condition that remembers an accepted generation while an operation fails."""
C = TypeVar("C", bound=ProviderConfig)
Converter = Callable[[Any], Any]


class Configurations:
    """The configurations of an object of an `Actuator[K, C]`, each decoded at first use.

    A Worker has one for each pool, any other object at most one. `cls` is C (`config_class`).
    """

    def __init__(self, cls: Any, obj: Object) -> None:
        self._cls = cls
        self._obj = obj
        self._known: dict[int, tuple[Any, list[FieldProblem]]] = {}

    @cached_property
    def _given(self) -> list[tuple[str, Raw | None]]:
        return list(_configs(self._obj))

    @cached_property
    def _rules(self) -> bool:
        return not _keeps(self._obj)

    def problems(self) -> list[FieldProblem]:
        """Return the problems of all of them."""
        return [problem for index in range(len(self._given)) for problem in self._read(index)[1]]

    def get(self, index: int | None = None) -> Any:
        """Return a configuration. Raises ConfigurationError with all its problems.

        Raises TypeError without the `index` of a pool for a Worker.
        """
        if index is None and hasattr(getattr(self._obj, "spec", None), "pools"):
            raise TypeError("each pool has a configuration; use ctx.pool_config(index)")
        config, problems = self._read(index or 0)
        if problems:
            raise invalid(self._obj, problems)
        return config

    def _read(self, index: int) -> tuple[Any, list[FieldProblem]]:
        if index not in self._known:
            field, given = self._given[index]
            self._known[index] = self._decoded(field, given)
        return self._known[index]

    def _decoded(self, field: str, given: Raw | None) -> tuple[Any, list[FieldProblem]]:
        if self._cls == Raw:
            return given or {}, []
        if self._cls is not None:
            return load_config(self._cls, given, field, rules=self._rules)
        if given is None or not self._rules:
            return None, []
        return None, [FieldProblem(field=field, detail="there is nothing to configure; remove it")]


def accepted_message(generation: int) -> str:
    """Return the message of the condition ACCEPTED."""
    return f"The configuration of generation {generation} was accepted."


def is_accepted(generation: int, status: object) -> bool:
    """Return whether an operation accepted the configuration of this generation, by the status."""
    by_type = conditions_in(status)
    if value_at(by_type, ACCEPTED, "message") == accepted_message(generation):
        return True
    not_ready = value_at(by_type, "Ready", "status") in ("False", "Unknown")  # no kind of Gardener
    failed = not_ready or value_at(status, "lastError") is not None
    return value_at(status, "observedGeneration") == generation and not failed


def _keeps(obj: Any) -> bool:
    """Whether the configuration was in use before: it is accepted, restored, or being deleted."""
    last = getattr(obj.status, "last_operation", None)
    is_restored = obj.metadata.annotations.get("gardener.cloud/operation") == "restore" or (
        last is not None
        and last.type == LastOperationType.RESTORE
        and last.state != LastOperationState.SUCCEEDED
    )
    if is_restored or obj.metadata.deletion_timestamp is not None:
        return True
    outcome = {  # only this: a whole status may be large
        "conditions": [encode(item) for item in getattr(obj.status, "conditions", ())],
        "lastError": getattr(obj.status, "last_error", None),
        "observedGeneration": getattr(obj.status, "observed_generation", None),
    }
    return is_accepted(obj.metadata.generation, outcome)


def load_config(
    cls: type[C], given: object, field: str, *, rules: bool = True
) -> tuple[C | None, list[FieldProblem]]:
    """Return a configuration of any accepted version, None if it cannot be decoded, and problems.

    `field` is its path; `given` is None for one without any field. Without `rules`, the problems
    leave out those of the class.
    """
    data: Any = {} if given is None else given
    version, converters = version_of(cls, data)
    if version is None:
        return None, [FieldProblem(field=field, detail=expected_versions(cls))]
    if found := check(version, data, field):
        return None, [FieldProblem(field=path, detail=detail) for path, detail in found]
    try:
        config: Any = decode(version, data)
        problems = _rules_of(config, field) if rules else []
        for convert in converters:
            config = convert(config)
        if rules and converters and not problems:  # with fields of the newest version
            problems = [
                FieldProblem(field=field, detail=f"{problem}, in {config.api_version}")
                for problem in _rules_of(config, "")
            ]
    except DecodeError as error:  # of the class's own validators
        return None, [FieldProblem(field=field, detail=f"{error}; correct it")]
    if not isinstance(config, cls):
        name = converters[-1].__name__ if converters else cls.__name__
        raise TypeError(f"{name} returned {type(config).__name__}; it must return {cls.__name__}")
    return config, problems


def _rules_of(config: ProviderConfig, field: str) -> list[FieldProblem]:
    return [
        attrs.evolve(problem, field=f"{field}.{problem.field}".strip("."))
        for problem in islice(config.problems(), MAX_PROBLEMS)
    ]


def accepted_versions(cls: type[ProviderConfig]) -> dict[type[ProviderConfig], list[Converter]]:
    """Return the class and its older versions, each with the functions that convert to it."""
    found: dict[type[ProviderConfig], list[Converter]] = {cls: []}
    for newer in (waiting := [cls]):
        for older, convert in vars(newer).get("versions", {}).items():
            if older not in found:
                found[older] = [convert, *found[newer]]
                waiting.append(older)
    return found


def version_of(cls: type[C], data: object) -> tuple[type[ProviderConfig] | None, list[Converter]]:
    """Return the version with the apiVersion and kind of a configuration, None for another one.

    Without apiVersion or kind, it is the first version in which these are not required.
    """
    accepted = accepted_versions(cls)
    if len(accepted) == 1 or not isinstance(data, dict):
        return cls, []  # whose schema names the problems
    for version, converters in accepted.items():
        if all(
            data.get(name) == value or (data.get(name) is None and not needed)
            for name, value, needed in constants(version)
        ):
            return version, converters
    return None, []


def expected_versions(cls: type[ProviderConfig]) -> str:
    """Return the remedy for a configuration of another version."""
    names = [[value for _, value, _ in constants(version)] for version in accepted_versions(cls)]
    return f"is not supported; set apiVersion and kind to {' or '.join(map(' '.join, names))}"


def constants(cls: type[ProviderConfig]) -> list[tuple[str, str, bool]]:
    """Return apiVersion and kind of a class: field, value, and whether it is required."""
    schema = json_schema(cls)
    return [
        (name, schema["properties"][name]["enum"][0], name in schema.get("required", ()))
        for name in ("apiVersion", "kind")
    ]


def changes_of(
    cls: type[ProviderConfig], before: object, after: object, field: str
) -> Iterator[FieldProblem]:
    """Yield a problem for each immutable field that changed; of two versions, in the newest."""
    version, _ = version_of(cls, after)
    if version is version_of(cls, before)[0]:
        yield from changes(comparable(version), before, after, field) if version else ()
        return
    old, new = (load_config(cls, given, field, rules=False)[0] for given in (before, after))
    if old is not None and new is not None:
        yield from changes(comparable(cls), encode(old), encode(new), field)


def has_configuration(raw: Raw) -> bool:
    """Return whether an object as JSON has a configuration, or one of its pools."""
    pools = value_at(raw, "spec", "pools")
    holders = [raw.get("spec"), *(pools if isinstance(pools, list) else ())]
    return any(value_at(holder, "providerConfig") is not None for holder in holders)


def _configs(obj: Any) -> Iterator[tuple[str, Raw | None]]:
    """Yield each configuration with its path: that of the spec, or those of a Worker's pools."""
    spec = getattr(obj, "spec", None)
    pools = getattr(spec, "pools", None)
    if pools is None:
        yield FIELD, getattr(spec, "provider_config", None)
    for index, pool in enumerate(pools or ()):
        yield f"spec.pools[{index}].providerConfig", pool.provider_config
