"""The smallest valid values: objects with only required fields, and examples of configurations.

Pure.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, TypeVar

from actuator.codec import decode
from actuator.interface import Actuator, ProviderConfig, config_class, object_class
from actuator.meta import GROUP, Object, Raw
from actuator.schema import content_of, json_schema, structural
from actuator.v1alpha1 import DNSRecord

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

EXAMPLES: Mapping[str, Raw] = {
    "BackupBucket": {"region": "region-1"},
    "BackupEntry": {"region": "region-1"},
    "Bastion": {"ingress": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
    "ContainerRuntime": {
        "binaryPath": "/var/bin/containerruntimes",
        "workerPool": {
            "name": POOL["name"],
            "selector": {"matchLabels": {"worker.gardener.cloud/pool": POOL["name"]}},
        },
    },
    "ControlPlane": {"region": "region-1"},
    "DNSRecord": {"recordType": "A", "values": ["192.0.2.1"]},
    "Infrastructure": {"region": "region-1"},
    "Network": {"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"},
    "OperatingSystemConfig": {"purpose": "provision"},
    "SelfHostedShootExposure": {
        "port": 443,
        "endpoints": [
            {"nodeName": "node-1", "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}
        ],
    },
    "Worker": {"region": "region-1"},
}
"""Required fields of Gardener's kinds; addresses are those of RFC 5737, for documentation."""

K = TypeVar("K", bound=Object)
_EMPTY = {"array": [], "boolean": False, "integer": 0, "number": 0, "object": {}}


def minimal_object(cls: type[K], name: str = "example", /, **spec: Any) -> K:
    """Return an object of the shoot `shoot--test--example`, for unit tests.

    Its spec has the given fields, by their JSON names, and the required ones with examples. It
    refers to the Secret `cloudprovider` of the shoot. Raises DecodeError for a value of another
    type.
    """
    secret = {"name": "cloudprovider", "namespace": NAMESPACE}
    known = {"secretRef": secret, "bucketName": name}
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
    """Return a spec with the known fields and the required ones.

    These have the values of `EXAMPLES`, or an example, a default or the minimum of their schema, or
    they are empty. Each DNSRecord has a name of its own: records of two shoots must not be one.
    """
    usual = EXAMPLES.get(cls.KIND.name, {}) if cls.KIND.group == GROUP else {}
    if cls is DNSRecord:
        usual = {"name": f"api.{known.get('bucketName', 'example')}.example.org", **usual}
    return _minimal(_spec_of(cls), {**deepcopy(usual), **known})


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
    declared = [schema[name] for name in ("example", "default", "minimum") if name in schema]
    if declared := declared or schema.get("enum", [])[:1]:
        return declared[0]
    if schema.get("minItems"):
        return [_minimal(schema["items"], {})]
    text = "AA==" if schema.get("format") == "byte" else ""
    return _EMPTY.get(schema.get("type", ""), text)


def _spec_of(cls: type[Object]) -> Any:
    return structural(cls)["properties"]["spec"]


def has_pools(cls: type[Object]) -> bool:
    """Whether objects of the class have a configuration for each pool."""
    return "pools" in _spec_of(cls)["properties"]
