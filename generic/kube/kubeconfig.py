"""Kubeconfigs: one reader with one allow-list, for Secrets and for files.

A tenant may write the kubeconfig in a Secret. YAML readers disagree about merges, tags and
duplicate keys, and a kubeconfig can run programs and read files. Therefore `read_kubeconfig`
extracts one server, its CA and one inline credential, and no other code reads the original bytes.

`read_files` trusts the files of the person who runs a command. It also reads the files that they
name, and returns an exec plugin without running it. The token of an auth-provider is used as it is,
and kubectl renews it in the file.

Source of the format: Kubernetes documentation, "kubeconfig (v1)" and "Organizing Cluster Access
Using kubeconfig Files". Not here: connections, and their credentials over time (`access`).
"""

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import attrs

from actuator.errors import ConfigurationError

if TYPE_CHECKING:
    import yaml

_CA = "certificate-authority-data"
_CERTIFICATE = "client-certificate-data"
_KEY = "client-key-data"
_SERVER_NAME = "tls-server-name"
_TEXT = "(?s).*"
_HOST = r"[\w.-]{1,253}"
_BASE64 = r"[\w+/=\n]*"
_URL = rf"https://({_HOST}|\[[0-9A-Fa-f:.]+\])(:[0-9]{{1,5}})?(/[\w.~:-]+)*/?"
_KINDS = ("cluster", "user", "context")
_TOP = "the top level"
_ALLOWED: dict[str, dict[str, str | None]] = {
    _TOP: {
        **dict.fromkeys(("apiVersion", "kind", "preferences", "extensions")),
        **dict.fromkeys(("clusters", "users", "contexts")),
        "current-context": _TEXT,
    },
    **{f"{kind}s": {"name": _TEXT, kind: None} for kind in _KINDS},
    "cluster": {"server": _URL, _CA: _BASE64, _SERVER_NAME: _HOST, "extensions": None},
    "user": {"token": "[!-~]*", _CERTIFICATE: _BASE64, _KEY: _BASE64, "extensions": None},
    "context": {"cluster": _TEXT, "user": _TEXT, "namespace": None, "extensions": None},
}
"""The keys of each part. In a Secret, a text matches its pattern; None allows any value."""
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
_ALLOWED_IN_FILES: dict[str, dict[str, str | None]] = {
    "cluster": {_PATHS[0]: _TEXT, "proxy-url": _TEXT, "insecure-skip-tls-verify": None},
    "user": {
        **dict.fromkeys((*_PATHS[1:], "username", "password"), _TEXT),
        **dict.fromkeys(("exec", "auth-provider", *_IMPERSONATION)),
    },
    "auth-provider": {"config": None},
    "config": dict.fromkeys(("id-token", "access-token"), _TEXT),
}
"""More keys, for files only. They are refused in a Secret, as all others are."""
_QUOTABLE = {
    "disable-compression",
    *(key for part in (*_ALLOWED.values(), *_ALLOWED_IN_FILES.values()) for key in part),
}
"""Any other key is the tenant's text, which no error repeats."""
_USED = f"server (https://), {_CA} (PEM), and either token or {_CERTIFICATE} with {_KEY}"
_NULL = {"", "~", "null", "Null", "NULL"}
_PEM_LABEL = re.compile(rb"-----BEGIN ([^-\n]*)-----")
_PLAIN_KEYS = {b"PRIVATE KEY", b"EC PRIVATE KEY", b"RSA PRIVATE KEY", b"EC PARAMETERS"}
"""Encrypted keys are refused: decrypting can cost as much CPU as their author wants."""
_MAX_KIB = 256
_MAX_NODES = 5000
_MAX_LEVELS = 12
_MAX_KEY_BYTES = 8192
"""With a longer key (RSA of more than 8,192 bits) each handshake costs seconds of CPU."""
_LOADER = "CLoader"  # only its events are used, and no constructor
_Fields = dict[str, Any]


@attrs.frozen
class InlineKubeconfig:
    """One server and one credential: `token`, or `certificate` and `key` (PEM)."""

    server: str
    ca: bytes = attrs.field(repr=False)
    token: str = attrs.field(default="", repr=False, kw_only=True)
    certificate: bytes = attrs.field(default=b"", repr=False, kw_only=True)
    key: bytes = attrs.field(default=b"", repr=False, kw_only=True)
    tls_server_name: str = attrs.field(default="", kw_only=True)

    def encoded(self, name: str = "inline") -> bytes:
        """Return a new kubeconfig with these values, as JSON, which all YAML parsers read alike."""
        cluster = {"server": self.server, _CA: self.ca, _SERVER_NAME: self.tls_server_name}
        user = {"token": self.token, _CERTIFICATE: self.certificate, _KEY: self.key}
        return write_kubeconfig(cluster, user, name)


@attrs.frozen
class LocalKubeconfig:
    """A configuration to connect with; `name` is for errors. Without a CA, the system's count."""

    name: str
    inline: InlineKubeconfig
    files: tuple[str, ...] = ()
    """The files that were read."""
    proxy: str = attrs.field(default="", repr=False)
    password: str = attrs.field(default="", repr=False)
    """USER:PASSWORD."""
    plugin: tuple[_Fields, str, _Fields] | None = attrs.field(default=None, repr=False)
    """The entry `exec`, the folder to run in, and the cluster."""
    expires: str = ""
    """The time at which the credentials of the plugin expire, "" for never."""
    is_trusted: bool = True

    @property
    def authorization(self) -> str:
        """The Authorization header, "" for none."""
        if self.inline.token:
            return f"Bearer {self.inline.token}"
        return f"Basic {base64.b64encode(self.password.encode()).decode()}" if self.password else ""


def write_kubeconfig(cluster: _Fields, user: _Fields, name: str, namespace: str = "") -> bytes:
    """Return a kubeconfig with one context, and without empty values. Bytes become base64."""
    config: _Fields = {"apiVersion": "v1", "kind": "Config", "current-context": name}
    context = {"cluster": name, "user": name, "namespace": namespace}
    for kind, fields in (("cluster", cluster), ("user", user), ("context", context)):
        used = {key: value for key, value in fields.items() if value}
        config[f"{kind}s"] = [{"name": name, kind: used}]
    text = json.dumps(config, indent=2, default=lambda data: base64.b64encode(data).decode())
    return text.encode() + b"\n"


def read_kubeconfig(content: bytes, context: str | None = None) -> InlineKubeconfig:
    """Return the server and credential of a context, by default the current one.

    Raises ConfigurationError: one sentence that quotes only keys of the format.
    """
    config = _config(_tree(content))
    found = _inline(*_selected(config, context or config["current-context"]))
    try:
        has_server = bool(found.server) and urlsplit(found.server).port != 0
    except ValueError:  # the port or the IPv6 address is out of range
        has_server = False
    has_one = bool(found.token) != bool(found.certificate) == bool(found.key)
    if not _PLAIN_KEYS.issuperset(_PEM_LABEL.findall(found.key)) or b"ENCRYPTED" in found.key:
        _refuse(f"has {_KEY} encrypted or of an unsupported type; use an unencrypted PEM key")
    if not (has_server and found.ca and has_one) or len(found.key) > _MAX_KEY_BYTES:
        _refuse(f"needs {_USED} (at most {_MAX_KEY_BYTES} bytes) in its current context")
    return found


def read_files(name: str, paths: Sequence[Path], context: str | None = None) -> LocalKubeconfig:
    """Return a context of the files, by default the current one.

    Raises ConfigurationError, OSError, ValueError: one sentence without credentials.
    """
    config = _merged(paths)
    names = [known for known, _ in config["context"]]
    wanted = context or config["current-context"]
    if wanted not in names:
        which = f"context {wanted!r} not found" if wanted else "current-context is not set"
        remedy = f"set --context to one of: {', '.join(names)}" if names else "it has no context"
        raise ValueError(f"{which}; {remedy}")
    cluster, user = _selected(config, wanted)
    if cluster["insecure-skip-tls-verify"]:
        raise ValueError(
            "insecure-skip-tls-verify is not supported, because it exposes credentials; "
            "set certificate-authority instead"
        )
    if any(user[key] for key in _IMPERSONATION):
        raise ValueError(
            "impersonation (as) is not supported, and without it the command would have other "
            "permissions; set the credentials of that user instead"
        )
    url = urlsplit(cluster["server"])
    if not url.hostname or url.port == 0:  # reading an impossible port raises ValueError
        raise ValueError("its cluster has no server")
    inline = _inline(cluster, user)
    named = [fields[key] for fields in (cluster, user) for key in _PATHS if fields.get(key)]
    has_password = not inline.token and user["username"] and user["password"]
    return LocalKubeconfig(
        f"{name}, context {wanted}",
        inline,
        (*map(str, paths), *named),
        cluster["proxy-url"],
        f"{user['username']}:{user['password']}" if has_password else "",
        (user["exec"], user["folder"], cluster) if user["exec"] and not inline.token else None,
    )


def _selected(config: _Fields, context: str) -> tuple[_Fields, _Fields]:
    """Return the cluster and the user of a context."""
    chosen = _named(config, "context", context)
    return _named(config, "cluster", chosen["cluster"]), _named(config, "user", chosen["user"])


def _inline(cluster: _Fields, user: _Fields) -> InlineKubeconfig:
    """Return the values of a context; those of a Secret name no files."""
    ca = _pem(cluster, _CA)
    certificate = _pem(user, _CERTIFICATE)
    key = _pem(user, _KEY)
    provider = _fields(user.get("auth-provider"), "auth-provider", is_local=True)
    tokens = _fields(provider["config"], "config", is_local=True)
    token = tokens["id-token"] or tokens["access-token"] or user["token"]
    if not token and user.get("tokenFile"):
        token = Path(user["tokenFile"]).read_text().strip()
    return InlineKubeconfig(
        cluster["server"],
        ca,
        token=token,
        certificate=certificate,
        key=key,
        tls_server_name=cluster[_SERVER_NAME],
    )


def _pem(fields: _Fields, key: str) -> bytes:
    """Return the data of a key, or the content of the file in the key without -data."""
    path = fields.get(key.removesuffix("-data"))
    if path and not fields[key]:
        return Path(path).read_bytes()
    try:
        data = base64.b64decode(fields[key].replace("\n", ""), validate=True)
    except ValueError:
        data = b"?"
    if data and b"-----BEGIN " not in data:
        _refuse(f"has an invalid {key}; set PEM in base64")
    return data


def _refuse(why: str) -> NoReturn:
    raise ConfigurationError(f"the kubeconfig {why}")


def _merged(paths: Sequence[Path]) -> _Fields:
    """Return the entries of several files, as kubectl merges them. Paths become absolute."""
    merged = _config({}, is_local=True)
    for path in paths:
        if not path.is_file():
            continue
        config = _config(_user_tree(path), is_local=True)
        folder = path.absolute().parent
        merged["current-context"] = merged["current-context"] or config["current-context"]
        for kind in _KINDS:
            known = {name for name, _ in merged[kind]}
            for name, fields in config[kind]:
                named = {key: str(folder / fields[key]) for key in _PATHS if fields.get(key)}
                if name not in known:
                    merged[kind].append((name, {**fields, **named, "folder": str(folder)}))
    merged["user"].append(("", _fields({}, "user", is_local=True)))  # of a context without one
    return merged


def _user_tree(path: Path) -> _Fields:
    """Return the document of a file. Raises ValueError, which does not quote the file."""
    import yaml  # on first use: an in-cluster configuration does not need it

    try:
        tree = yaml.safe_load(path.read_bytes())  # libyaml crashes on deep documents
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise ValueError(f"{getattr(error, 'problem', None) or 'not YAML'}{where}") from None
    if not tree or not isinstance(tree, dict):
        raise ValueError("not a valid kubeconfig" if tree else "the file is empty")
    return tree


def _tree(content: bytes) -> Any:
    """Return a tenant's document as dicts, lists and texts, without references or types."""
    import yaml

    stack: list[list[Any]] = [[]]
    try:
        text = content.decode("utf-8-sig") if len(content) <= _MAX_KIB * 1024 else ""
        loader = getattr(yaml, _LOADER, yaml.Loader)
        for number, event in enumerate(yaml.parse(text, Loader=loader)):
            if number >= _MAX_NODES or len(stack) > _MAX_LEVELS:
                break
            _add(event, stack)
        else:
            if len(stack[0]) == 1:
                return stack[0][0]
    except (yaml.YAMLError, ValueError, OverflowError):  # not UTF-8, or an escape beyond Unicode
        pass
    _refuse(
        f"must be one YAML document in UTF-8 of at most {_MAX_KIB} KiB, {_MAX_NODES} nodes and "
        f"{_MAX_LEVELS} levels; write it with `kubectl config view --raw --minify --flatten`"
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


def _config(tree: Any, is_local: bool = False) -> _Fields:
    """Return the current-context, and for each kind a list of names and fields."""
    top = _fields(tree, _TOP, is_local)
    config: _Fields = {"current-context": top["current-context"]}
    for kind in _KINDS:
        part = f"{kind}s"
        if not isinstance(top[part] or [], list):
            _refuse_value(part, is_local)
        entries = [_fields(entry, part, is_local) for entry in top[part] or []]
        config[kind] = [(entry["name"], _fields(entry[kind], kind, is_local)) for entry in entries]
    return config


def _fields(value: Any, part: str, is_local: bool) -> _Fields:
    """Return the allowed fields of a mapping; a missing text is ""."""
    fields = value or {}
    if not isinstance(fields, dict):
        _refuse_value(part, is_local)
    allowed = _ALLOWED.get(part, {}) | (_ALLOWED_IN_FILES.get(part, {}) if is_local else {})
    for key in [] if is_local else sorted(fields.keys() - allowed.keys()):
        quoted = f"the key {key}" if key in _QUOTABLE else "an unknown key"
        _refuse(f"has {quoted} in {part}; remove it: only {_USED} are used")
    found = {key: fields.get(key) for key in allowed}
    for key, pattern in allowed.items():
        if pattern is None:
            continue
        text = found[key] = "" if found[key] in (None, [], {}) else found[key]
        is_text = isinstance(text, str)
        if not is_text or (text and not is_local and not re.fullmatch(pattern, text, re.ASCII)):
            _refuse_value(key, is_local)
    return found


def _refuse_value(where: str, is_local: bool) -> NoReturn:
    _refuse(f"has an invalid value in {where}" + ("" if is_local else f"; set {_USED}"))


def _named(config: _Fields, kind: str, name: str) -> _Fields:
    found: list[_Fields] = [fields for known, fields in config[kind] if known == name]
    if len(found) != 1:
        _refuse(f"has {len(found)} {kind}s with the name in its current context; keep one")
    return found[0]
