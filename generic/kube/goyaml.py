"""YAML as programs in Go read and write it."""

import re
from typing import Any

import yaml

from generic.kube.encoding import go_json


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


def go_yaml(value: object) -> str:
    """Return YAML with the bytes that Go's `sigs.k8s.io/yaml` writes, for a value of JSON.

    Source: go.yaml.in/yaml/v2, `keyList.Less` (the order of keys) and `encoder.stringv`.
    """
    return yaml.dump(_sorted(value), Dumper=_GoDumper, allow_unicode=True, sort_keys=False)


class _GoDumper(yaml.SafeDumper):
    """Writes no anchors, and no tags: `_scalar` decides about quotes."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, Any]]] = {}

    def ignore_aliases(self, data: object) -> bool:
        return True


def _scalar(dumper: _GoDumper, value: object) -> yaml.ScalarNode:
    """Return the node of a value; a text that Go would read as another type is quoted."""
    text = value
    style = None
    if not isinstance(text, str):
        text = go_json(value)
    elif "\n" in text:
        style = "|"
    elif _NO_TEXT.fullmatch(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


for _type in (str, bool, int, float, type(None)):
    _GoDumper.add_representer(_type, _scalar)

_WORDS = ("y", "yes", "true", "on", "n", "no", "false", "off", "null")
_NO_TEXT = re.compile(
    r"|~|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
    rf"|{'|'.join(form for word in _WORDS for form in (word, word.capitalize(), word.upper()))}"
    r"|[-+]?(?=[\d.])(0_*[xX][\da-fA-F_]+|0_*[oO][0-7_]+|0_*[bB][01_]+"
    r"|(\.[\d_]+|[\d_]+(\.[\d_]*)?)([eE][-+]?[\d_]+)?)"
    r"|\d{4}-\d{1,2}-\d{1,2}([Tt ][\d:.]+([Zz]|[-+]\d\d:\d\d)?)?"
    r"|[-+]?\d[\d_]*(:[0-5]?\d)+(\.[\d_]*)?",
    re.ASCII,
)
"""As `resolve` and `isBase60Float` of go.yaml.in/yaml/v2."""


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=_order)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _order(key: str) -> list[tuple[int, int, int]]:
    """Numbers are compared as such; other characters come before them, and letters after."""
    return [
        (1, int(part), len(part)) if part.isdecimal() else (2 * part.isalpha(), ord(part), 0)
        for part in re.findall(r"\d+|\D", key)
    ]
