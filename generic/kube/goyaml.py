"""YAML as programs in Go read it."""

import re
from typing import Any

import yaml


class GoLoader(yaml.SafeLoader):
    """Reads YAML like Go: no dates, and no numbers of base 60."""


def _resolvers() -> dict[str, list[tuple[str, Any]]]:
    other = {"timestamp", "int", "float", "value"}
    return {
        first: [(tag, pattern) for tag, pattern in pairs if tag.rpartition(":")[2] not in other]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


GoLoader.yaml_implicit_resolvers = _resolvers()
GoLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]*|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)
GoLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$|[-+]?\.inf$|\.nan$"),
    list("-+0123456789."),
)
