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
from actuator.provider_config import load_config
from generic.kube.goyaml import GoLoader
from generic.library.webhooks.places import IN_SHOOT, Place, configurations, objects

Configs = Mapping[tuple[str, str, str], type[ProviderConfig]]
"""The configuration classes by apiVersion, kind and type of their objects; type "" is any."""
_MAX_BYTES = 4 * 2**20
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
        names = set()
        merged = 0
        for key, value in node.value:
            if key.tag == _MERGE:
                for item in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(item, yaml.MappingNode):
                        self.flatten_mapping(item)
                        merged += len(item.value)
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
    in_shoot = [f"{item.holder}.{item.field}" for item in IN_SHOOT if item.kind == kind.name]
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
    pieces = []
    size = 0
    for piece in json.JSONEncoder(allow_nan=False).iterencode(document):
        pieces.append(piece)
        if (size := size + len(piece)) > _MAX_BYTES:  # aliases multiply
            raise ValueError(f"it has more than {_MAX_BYTES} characters")
    return json.loads("".join(pieces))


def _examine(obj: Any, place: str, configs: Configs) -> Iterator[Examined]:
    if not isinstance(obj, dict):
        return
    for item in obj["items"] if isinstance(obj.get("items"), list) else ():
        yield from _examine(item, place, configs)
    version = str(obj.get("apiVersion"))
    kind = str(obj.get("kind"))
    parts: Sequence[Place] = [Place(kind, _holder(kind), "", owner="spec")]
    if kind == "Shoot" and version.startswith("core.gardener.cloud/"):
        parts = IN_SHOOT
        version = f"{GROUP}/{VERSION}"
    meta = dict(objects(obj, "metadata")).get("metadata", {})
    name = "/".join(str(meta[part]) for part in ("namespace", "name") if part in meta)
    subject = f"{place}: {kind} {name}".rstrip()
    for element in parts:
        for field, type, given in configurations(element, obj):
            key = (version, element.kind)
            cls = configs.get((*key, type)) or configs.get((*key, ""))
            if given is not None or cls is not None:
                problems = None if cls is None else _problems(cls, given, field)
                yield Examined(subject, field, f"{element.kind} {type}", problems)


def _problems(cls: type[ProviderConfig], given: object, field: str) -> list[FieldProblem]:
    try:
        return load_config(cls, given, field)[1]
    except Exception as error:  # of the author's `problems`
        detail = f"{cls.__name__} raised {type(error).__name__}: {error}; correct the class"
        return [FieldProblem(field=field, detail=detail, internal=True)]


def _holder(kind: str) -> str:
    return "spec.pools[]" if kind == "Worker" else "spec"
