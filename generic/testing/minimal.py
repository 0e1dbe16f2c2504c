"""The smallest valid values: objects with only required fields, and examples of configurations.

Pure.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from actuator.codec import decode
from actuator.interface import Actuator, ProviderConfig, config_class, object_class
from actuator.meta import Object, Raw
from actuator.schema import content_of, json_schema, structural

USER_DATA = {"name": "gardener-node-agent-pool-1", "key": "cloud_config"}
"""The Secret and its data key with the user data of the machines of `POOL`."""

POOL: Raw = {
    "name": "pool-1",
    "machineType": "small",
    "machineImage": {"name": "linux", "version": "1.0.0"},
    "minimum": 1,
    "maximum": 2,
    "maxSurge": 1,
    "maxUnavailable": 0,
    "zones": ["zone-1"],
    "nodeAgentSecretName": USER_DATA["name"],
    "userDataSecretRef": USER_DATA,
}
"""The pool of a Worker."""

NAMESPACE = "shoot--test--example"
"""The namespace of the shoot of `minimal_object`."""

K = TypeVar("K", bound=Object)
_EMPTY = {"array": [], "boolean": False, "integer": 0, "number": 0, "object": {}}


def minimal_object(cls: type[K], name: str = "example", /, **spec: Any) -> K:
    """Return an object of the shoot `shoot--test--example`, for unit tests.

    Its spec has the given fields, by their JSON names, and the required ones. It refers to the
    Secret `cloudprovider` of the shoot. Raises DecodeError for a value of another type.
    """
    known = {"secretRef": {"name": "cloudprovider", "namespace": NAMESPACE}}
    meta = {"name": name, "namespace": NAMESPACE if cls.KIND.namespaced else ""}
    return decode(cls, {"metadata": meta, "spec": {**minimal_spec(cls, known), **spec}})


def example_spec(actuator: Actuator[Any], known: Mapping[str, Any]) -> Any:
    """Return the minimal spec of an actuator's kind, with an example of its configuration.

    A Worker has one pool, which has the configuration.
    """
    config = config_class(actuator)
    cls = object_class(actuator)
    given: Raw = {}
    if isinstance(config, type) and issubclass(config, ProviderConfig):
        given = {"providerConfig": example(json_schema(config))}
    return minimal_spec(cls, {**known, **({"pools": [POOL | given]} if has_pools(cls) else given)})


def minimal_spec(cls: type[Object], known: Mapping[str, Any]) -> Any:
    """Return a spec with the known fields and the required ones, which are empty."""
    return _minimal(_spec_of(cls), known)


def example(schema: Raw, *, required: bool = True) -> Any:
    """Return a value with all required fields, and those that have an example or a default.

    A required field without either gets its type in angle brackets; an optional value is None.
    """
    known = [schema[name] for name in ("example", "default") if name in schema]
    if known := known or schema.get("enum", [])[:1]:
        return known[0]
    if content := content_of(schema):
        item = example(content, required=required)
        return item if item is None else [item] if "items" in schema else {"name": item}
    needed = schema.get("required", ())
    fields = schema.get("properties", {}).items()
    values = {name: example(field, required=name in needed) for name, field in fields}
    shown = {name: value for name, value in values.items() if value is not None}
    return shown or (f"<{type_of(schema)}>" if required else None)


def type_of(schema: Raw) -> str:
    """Return the type of a value, in words."""
    if content := content_of(schema):
        return f"{'list' if 'items' in schema else 'map'} of {type_of(content)}"
    return str(schema.get("type", "integer or string" if "anyOf" in schema else "any"))


def _minimal(schema: Raw, known: Mapping[str, Any]) -> Any:
    if fields := schema.get("properties"):
        names = sorted({*schema.get("required", ())} | known.keys() & fields.keys())
        return {name: known.get(name) or _minimal(fields[name], {}) for name in names}
    text = "AA==" if schema.get("format") == "byte" else ""
    return _EMPTY.get(schema.get("type", ""), text)


def _spec_of(cls: type[Object]) -> Any:
    return structural(cls)["properties"]["spec"]


def has_pools(cls: type[Object]) -> bool:
    """Whether objects of the class have a configuration for each pool."""
    return "pools" in _spec_of(cls)["properties"]
