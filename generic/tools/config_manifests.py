"""Finds the provider configurations in manifests of Shoots and extension objects, and checks them.

Not here: where a Shoot has them (`generic.library.webhooks.places`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import attrs
import yaml
from yaml.constructor import ConstructorError

from actuator.errors import ConfigurationError
from actuator.interface import FieldProblem, ProviderConfig
from actuator.meta import GROUP, VERSION, Kind
from actuator.provider_config import problems_of
from generic.kube.goyaml import GoLoader
from generic.library.webhooks.places import IN_SHOOT, Place, objects

Configs = Mapping[tuple[str, str, str], type[ProviderConfig]]
"""The configuration classes by apiVersion, kind and type of their objects; type "" is any."""
_LARGEST = 4 * 2**20
"""Characters of a manifest in JSON."""
_MAX_MERGED = 10_000
"""Fields that the merge keys of one mapping may add: aliases multiply."""
_MERGE = "tag:yaml.org,2002:merge"


@attrs.frozen
class Examined:
    """A configuration `of` a kind and type; `problems` is None if no class is known for it."""

    place: str
    """File, document, kind and name of the object."""
    field: str
    of: str
    problems: Sequence[FieldProblem] | None


class _Loader(GoLoader):
    """Refuses duplicate keys, of which only the last would count, and merge keys that multiply."""

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._flat: dict[int, yaml.MappingNode] = {}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace the merge keys of a node. Raises ConstructorError."""
        if id(node) in self._flat:
            return
        self._flat[id(node)] = node
        names, merged = set(), 0
        for key, value in node.value:
            if key.tag == _MERGE:
                for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(one, yaml.MappingNode):
                        self.flatten_mapping(one)
                        merged += len(one.value)
            elif isinstance(key, yaml.ScalarNode):
                if key.value in names:
                    raise _refusal(f"key {key.value!r} is a duplicate", key)
                names.add(key.value)
            if merged > _MAX_MERGED:
                raise _refusal(f"merge keys add more than {_MAX_MERGED} fields", key)
        super().flatten_mapping(node)


def _refusal(problem: str, node: yaml.Node) -> yaml.YAMLError:
    return ConstructorError(None, None, problem, node.start_mark)


def places_of(kind: Kind, types: Sequence[str]) -> list[str]:
    """Return the fields in which users write the configuration of a kind, for these types."""
    suffix = f" with type {' or '.join(types)}" if types else ""
    in_shoot = [f"{one.holder}.{one.field}" for one in IN_SHOOT if one.kind == kind.name]
    places = [f"{kind.name}: `{_holder(kind.name)}.providerConfig`{suffix}"]
    return places + [f"Shoot: `{place}`{suffix}" for place in in_shoot if kind.group == GROUP]


def documents(file: BinaryIO) -> Iterator[Any]:
    """Yield the documents of a file of YAML or JSON. Raises ConfigurationError."""
    try:
        yield from map(_as_json, yaml.load_all(file.read(), _Loader))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        text = " ".join(str(error).split())
        raise ConfigurationError(f"{file.name} cannot be read: {text}; correct it") from error


def examine(file: BinaryIO, configs: Configs) -> Iterator[Examined]:
    """Yield the configurations in a file of YAML or JSON. Raises ConfigurationError."""
    for number, document in enumerate(documents(file), 1):
        yield from _examine(document, f"{file.name}: document {number}", configs)


def _as_json(document: object) -> Any:
    """Return a document as JSON. Raises ValueError, TypeError or RecursionError if it is none."""
    pieces, size = [], 0
    for piece in json.JSONEncoder(allow_nan=False).iterencode(document):
        pieces.append(piece)
        if (size := size + len(piece)) > _LARGEST:  # aliases multiply
            raise ValueError(f"it has more than {_LARGEST} characters")
    return json.loads("".join(pieces))


def _examine(obj: Any, place: str, configs: Configs) -> Iterator[Examined]:
    if not isinstance(obj, dict):
        return
    for item in obj["items"] if isinstance(obj.get("items"), list) else ():
        yield from _examine(item, place, configs)
    version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
    parts: Sequence[Place] = [Place(kind, _holder(kind), "type")]
    owner = "spec"
    if is_shoot := kind == "Shoot" and version.startswith("core.gardener.cloud/"):
        parts, owner, version = IN_SHOOT, "spec.provider", f"{GROUP}/{VERSION}"
    meta = dict(objects(obj, "metadata")).get("metadata", {})
    provider = dict(objects(obj, owner)).get(owner, {})
    name = "/".join(str(meta[part]) for part in ("namespace", "name") if part in meta)
    subject = f"{place}: {kind} {name}".rstrip()
    for one in parts:
        for path, found in objects(obj, one.holder):
            field = f"{path}.{one.field}"
            given = found.get(one.field)
            type = str(found.get(one.type_field, provider.get("type", "")))
            cls = configs.get((version, one.kind, type)) or configs.get((version, one.kind, ""))
            workerless = is_shoot and one.kind != "Extension" and not provider.get("workers")
            if given is not None or (cls is not None and not workerless):
                problems = None if cls is None else _problems(cls, given, field)
                yield Examined(subject, field, f"{one.kind} {type}", problems)


def _problems(cls: type[ProviderConfig], given: object, field: str) -> list[FieldProblem]:
    try:
        return problems_of(cls, given, field)
    except Exception as error:  # of the author's `problems`
        detail = f"{cls.__name__} raised {type(error).__name__}: {error}; correct the class"
        return [FieldProblem(field=field, detail=detail, internal=True)]


def _holder(kind: str) -> str:
    return "spec.pools[]" if kind == "Worker" else "spec"
