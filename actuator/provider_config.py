"""providerConfig: a user's configuration, decoded strictly; its problems are FieldProblems.

Gardener decodes it strictly too: unknown fields, and another apiVersion or kind than the declared
ones, are errors (`checking`). A null counts as absent. The rules of a class (`problems`) are only
for a generation that no reconciliation accepted before, so that a new rule stops no unchanged
shoot. Pure.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeVar

import attrs

from actuator.checking import MAX_PROBLEMS, check
from actuator.codec import decode, encode
from actuator.errors import DecodeError
from actuator.interface import FieldProblem, ProviderConfig, invalid
from actuator.meta import DefaultSpec, LastOperationState, LastOperationType, Object, Raw, value_at
from actuator.schema import json_schema

FIELD = "spec.providerConfig"
ACCEPTED = "ConfigurationAccepted"
"""The type of the condition that remembers an accepted generation while an operation fails."""
C = TypeVar("C", bound=ProviderConfig)


def read_config(cls: type[C], obj: Object, pool: int = 0) -> C:
    """Return the configuration of an object, or of the pool of a Worker with this index.

    Omitted fields have their defaults. Raises ConfigurationError with all problems.
    """
    field, given = list(_configs(obj))[pool]
    if problems := problems_of(cls, given, field, rules=not _keeps(obj)):
        raise invalid(obj, problems)
    return decode(cls, given or {})


def config_problems(cls: type[ProviderConfig], obj: Object) -> Iterator[FieldProblem]:
    """Yield every problem of an object's configuration, for `Actuator.validate`."""
    rules = not _keeps(obj)
    for field, given in _configs(obj):
        yield from problems_of(cls, given, field, rules=rules)


def accepted_message(generation: int) -> str:
    """Return the message of the condition ACCEPTED."""
    return f"The configuration of generation {generation} was accepted."


def is_accepted(generation: int, status: object) -> bool:
    """Return whether an operation accepted the configuration of this generation, by the status."""
    listed = value_at(status, "conditions")
    by_type = {
        str(value_at(one, "type")): one for one in (listed if isinstance(listed, list) else ())
    }
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
    is_deleted = obj.metadata.deletion_timestamp is not None
    return is_restored or is_deleted or is_accepted(obj.metadata.generation, encode(obj.status))


def problems_of(
    cls: type[ProviderConfig], given: object, field: str, *, rules: bool = True
) -> list[FieldProblem]:
    """Return the problems of a configuration at this path; None is one without any field.

    Without `rules`, those of the class (`problems`) are left out.
    """
    data: Any = {} if given is None else given
    if found := check(cls, data, field):
        return [FieldProblem(field=path, detail=detail) for path, detail in found]
    try:
        config = decode(cls, data)
        problems = list(islice(config.problems(), MAX_PROBLEMS)) if rules else []
    except DecodeError as error:  # of the class's own validators
        return [FieldProblem(field=field, detail=f"{error}; correct it")]
    return [attrs.evolve(one, field=f"{field}.{one.field}".rstrip(".")) for one in problems]


def immutable_fields(cls: type[ProviderConfig]) -> list[tuple[tuple[str, ...], object]]:
    """Return the path of each field whose `Schema` is immutable, with its default.

    Raises TypeError for one in a list or map, whose entries cannot be matched.
    """
    return list(_immutable(json_schema(cls), ()))


def _immutable(schema: Raw, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if "x-kubernetes-validations" in schema:
        yield path, schema.get("default")
        return
    for part in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict) and list(_immutable(part, ())):
            raise TypeError(f"{'.'.join(path)}: entries cannot be immutable; declare the field so")
    for name, part in schema.get("properties", {}).items():
        yield from _immutable(part, (*path, name))


def changes_of(
    cls: type[ProviderConfig], before: object, after: object, field: str
) -> Iterator[FieldProblem]:
    """Yield a problem for each immutable field that had a value, or a default, and changed."""
    for path, default in immutable_fields(cls):
        values = value_at(before, *path), value_at(after, *path)
        old, new = (default if value is None else value for value in values)
        if old is not None and old != new:
            name = ".".join((field, *path))
            yield FieldProblem(field=name, detail="field is immutable; set its former value")


def refuse_config(spec: DefaultSpec) -> Iterator[FieldProblem]:
    """Yield a problem if there is a providerConfig, for a kind that has nothing to configure."""
    if spec.provider_config is not None:
        yield FieldProblem(field=FIELD, detail="there is nothing to configure; remove it")


def _configs(obj: Any) -> Iterator[tuple[str, Raw | None]]:
    """Yield each configuration with its path: that of the spec, or those of a Worker's pools."""
    pools = getattr(obj.spec, "pools", None)
    if pools is None:
        yield FIELD, obj.spec.provider_config
    for index, pool in enumerate(pools or ()):
        yield f"spec.pools[{index}].providerConfig", pool.provider_config
