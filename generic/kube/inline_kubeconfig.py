"""Kubeconfigs from Secrets: parsed by an allow-list, and rebuilt before use.

A tenant may write these bytes. YAML readers disagree about merges, tags and duplicate keys, and a
kubeconfig can run programs and read files. Therefore `read_kubeconfig` extracts one server, its CA
and one inline credential, and no other code reads the original bytes. Source of the format:
Kubernetes documentation, "kubeconfig (v1)". Not here: the operator's kubeconfig (`kubeconfig`).
"""

import base64
import json
import re
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import attrs

from actuator.errors import ConfigurationError

if TYPE_CHECKING:
    import yaml

_KIB, _NODES, _LEVELS, _KEY_BYTES = 256, 5000, 12, 8192
"""Limits. With a longer key (RSA of more than 8,192 bits) each handshake costs seconds of CPU."""
_CA, _CERTIFICATE, _KEY, _NAME = (
    *("certificate-authority-data", "client-certificate-data", "client-key-data"),
    "tls-server-name",
)
_TEXT, _HOST, _BASE64 = "(?s).*", r"[\w.-]{1,253}", r"[\w+/=\n]*"
_URL = rf"https://({_HOST}|\[[0-9A-Fa-f:.]+\])(:[0-9]{{1,5}})?(/[\w.~:-]+)*/?"
_CLUSTER = {"server": _URL, _CA: _BASE64, _NAME: _HOST, "extensions": None}
_USER = {"token": "[!-~]*", _CERTIFICATE: _BASE64, _KEY: _BASE64, "extensions": None}
_CONTEXT = {"cluster": _TEXT, "user": _TEXT, "namespace": _TEXT, "extensions": None}
_FORMAT = {
    **dict.fromkeys(("apiVersion", "kind", "preferences", "extensions")),
    "clusters": [{"name": _TEXT, "cluster": _CLUSTER}],
    "users": [{"name": _TEXT, "user": _USER}],
    "contexts": [{"name": _TEXT, "context": _CONTEXT}],
    "current-context": _TEXT,
}
"""Maps keys to a pattern of the text, to the form of the entries, or to None (ignored)."""
_QUOTABLE = {
    *("exec", "auth-provider", "tokenFile", "username", "password", "client-certificate"),
    *("client-key", "certificate-authority", "insecure-skip-tls-verify", "proxy-url"),
    *("as", "as-uid", "as-groups", "as-user-extra", "disable-compression"),
    *(*_FORMAT, *_CLUSTER, *_USER, *_CONTEXT),
}
"""Any other key is the tenant's text, which no error repeats."""
_USED = f"server (https://), {_CA} (PEM), and either token or {_CERTIFICATE} with {_KEY}"
_NULL = {"", "~", "null", "Null", "NULL"}
_PEM_LABEL = re.compile(rb"-----BEGIN ([^-\n]*)-----")
_PLAIN_KEYS = {b"PRIVATE KEY", b"EC PRIVATE KEY", b"RSA PRIVATE KEY", b"EC PARAMETERS"}
"""Encrypted keys are refused: decrypting can cost as much CPU as their author wants."""
_LOADER = "CLoader"  # only its events are used, and no constructor


@attrs.frozen
class InlineKubeconfig:
    """One server and one credential: `token`, or `certificate` and `key` (PEM)."""

    server: str
    ca: bytes = attrs.field(repr=False)
    token: str = attrs.field(default="", repr=False)
    certificate: bytes = attrs.field(default=b"", repr=False)
    key: bytes = attrs.field(default=b"", repr=False)
    tls_server_name: str = ""

    def encoded(self, name: str = "inline") -> bytes:
        """Return a new kubeconfig with these values, as JSON, which all YAML parsers read alike."""
        data = {_CA: self.ca, _CERTIFICATE: self.certificate, _KEY: self.key}
        values = {key: base64.b64encode(value).decode() for key, value in data.items()}
        values |= {"server": self.server, _NAME: self.tls_server_name, "token": self.token}
        config: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": name}
        for kind, keys in (("cluster", _CLUSTER), ("user", _USER)):
            entry = {key: values[key] for key in keys if values.get(key)}
            config[f"{kind}s"] = [{"name": name, kind: entry}]
        config["contexts"] = [{"name": name, "context": {"cluster": name, "user": name}}]
        return json.dumps(config, indent=2).encode() + b"\n"


def read_kubeconfig(content: bytes, context: str | None = None) -> InlineKubeconfig:
    """Return the server and credential of a context, by default the current one.

    Raises ConfigurationError: one sentence that quotes only keys of the format.
    """
    config = _checked(_tree(content), _FORMAT, "the top level")
    chosen = _named(config, "context", context or config["current-context"])
    cluster = _named(config, "cluster", chosen["cluster"])
    user = _named(config, "user", chosen["user"])
    ca, certificate, key = _pem(cluster, _CA), _pem(user, _CERTIFICATE), _pem(user, _KEY)
    token, server, name = user["token"], cluster["server"], cluster[_NAME]
    try:
        _ = urlsplit(server).port
    except ValueError:  # the port or the IPv6 address is out of range
        server = ""
    single = bool(token) != bool(certificate) == bool(key)
    if not _PLAIN_KEYS.issuperset(_PEM_LABEL.findall(key)) or b"ENCRYPTED" in key:
        _refuse(f"has {_KEY} encrypted or of an unsupported type; use an unencrypted PEM key")
    if not (server and ca and single) or len(key) > _KEY_BYTES:
        _refuse(f"needs {_USED} (at most {_KEY_BYTES} bytes) in its current context")
    return InlineKubeconfig(server, ca, token, certificate, key, name)


def _refuse(why: str) -> NoReturn:
    raise ConfigurationError(f"the kubeconfig {why}")


def _tree(content: bytes) -> Any:
    """Return the document as dicts, lists and texts, without recursion, references or types."""
    import yaml  # on first use: an in-cluster configuration does not need it

    stack: list[list[Any]] = [[]]
    try:
        text = content.decode("utf-8-sig") if len(content) <= _KIB * 1024 else ""
        loader = getattr(yaml, _LOADER, yaml.Loader)
        for number, event in enumerate(yaml.parse(text, Loader=loader)):
            if number >= _NODES or len(stack) > _LEVELS:
                break
            _add(event, stack)
        else:
            if len(stack[0]) == 1:
                return stack[0][0]
    except (yaml.YAMLError, ValueError, OverflowError):  # not UTF-8, or an escape beyond Unicode
        pass
    _refuse(
        f"must be one YAML document in UTF-8 of at most {_KIB} KiB, {_NODES} nodes and {_LEVELS} "
        "levels; write it with `kubectl config view --raw --minify --flatten`"
    )


def _add(event: "yaml.Event", stack: list[list[Any]]) -> None:
    """Put one event into the innermost open collection."""
    import yaml

    if getattr(event, "anchor", None) is not None or getattr(event, "tag", None) is not None:
        _refuse("uses YAML anchors, aliases or tags; write the values themselves")
    if isinstance(event, yaml.CollectionStartEvent):
        stack.append([])
    elif isinstance(event, yaml.ScalarEvent):
        if not event.value.replace("\n", "").isprintable():
            _refuse("has a control character in a value; remove it")
        stack[-1].append("" if event.implicit[0] and event.value in _NULL else event.value)
    elif isinstance(event, yaml.CollectionEndEvent):
        nodes: Any = stack.pop()
        if isinstance(event, yaml.MappingEndEvent):
            keys = [key for key in nodes[::2] if isinstance(key, str) and key != "<<"]
            if len(set(keys)) < len(nodes) / 2:
                _refuse("has a duplicate key, a merge key or a key that is not a string; remove it")
            nodes = dict(zip(keys, nodes[1::2], strict=True))
        stack[-1].append(nodes)


def _checked(value: Any, form: Any, where: str) -> Any:
    """Return the value in the shape of `form`, with "" or an empty collection for a missing key."""
    value = value or ("" if isinstance(form, str) else type(form)())
    if isinstance(form, list) and isinstance(value, list):
        return [_checked(entry, form[0], where) for entry in value]
    if isinstance(form, dict) and isinstance(value, dict):
        for key in sorted(value.keys() - form.keys()):
            quoted = f"the key {key}" if key in _QUOTABLE else "an unknown key"
            _refuse(f"has {quoted} in {where}; remove it: only {_USED} are used")
        return {key: _checked(value.get(key), form[key], key) for key in form}
    if isinstance(form, str) and (
        not value or (isinstance(value, str) and re.fullmatch(form, value, re.ASCII))
    ):
        return value
    return None if form is None else _refuse(f"has an invalid value in {where}; set {_USED}")


def _named(config: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [e[kind] for e in config[f"{kind}s"] if e["name"] == name]
    if len(found) != 1:
        _refuse(f"has {len(found)} {kind}s with the name in its current context; keep one")
    return found[0]


def _pem(fields: dict[str, str], key: str) -> bytes:
    try:
        data = base64.b64decode(fields[key].replace("\n", ""), validate=True)
    except ValueError:
        data = b"?"
    if data and b"-----BEGIN " not in data:
        _refuse(f"has an invalid {key}; set PEM in base64")
    return data
