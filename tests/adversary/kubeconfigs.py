"""Kubeconfigs that a tenant may write, and the rules that hold for each.

`kubeconfig(rng)` generates one; `problem(content)` gives it to the product and says which rule it
breaks. client-go (gokubeconfig/) and PyYAML read the kubeconfigs that the product rebuilds.
"""

from __future__ import annotations

import atexit
import base64
import copy
import functools
import json
import random
import resource
import struct
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from actuator.errors import ConfigurationError
from generic.kube import kubeconfig as product
from tests.support.landscape.go_programs import build_reader

__all__ = ["PARTS", "SECRET", "Reader", "kubeconfig", "problem", "reader"]

SECRET = "m4rked+Secr3t/of=a&Tenant"
"""In each credential; no error has 8 characters of it, plain, as base64 or URL-encoded."""
_HERE = Path(__file__).parent
_SECONDS = 1.0
_KIB = 20 * 1024
_PEM, _KEY = (
    base64.b64encode(f"-----BEGIN {label}-----\n{SECRET}\n".encode()).decode()
    for label in ("CERTIFICATE", "PRIVATE KEY")
)
_SHIFTED = (base64.b64encode(SECRET[skip:].encode()).decode().rstrip("=")[:-1] for skip in range(3))
_TRACES = {
    form[at : at + 8]
    for form in (SECRET, quote(SECRET, ""), *_SHIFTED)
    for at in range(len(form) - 7)
}
_EXEC = f'{{apiVersion: client.authentication.k8s.io/v1, command: sh, args: ["{SECRET}"]}}'
PARTS: dict[str, Any] = yaml.safe_load(
    (_HERE / "kubeconfigs.yaml")
    .read_text()
    .replace("EXEC", json.dumps(_EXEC)[1:-1])
    .replace("SECRET", SECRET)
    .replace("PEM", _PEM)
    .replace("PKCS8", _KEY)
)
Reader = Callable[[bytes], dict[str, str]]


def kubeconfig(rng: random.Random) -> bytes:
    """A valid kubeconfig, or one with up to three hostile changes, or one made to be expensive."""
    if not rng.randrange(10):
        start, part = rng.choice(PARTS["bombs"])
        numbers = range(1, rng.choice([10, 100, 100_000]))
        parts = (part.replace("N", str(n)).replace("M", str(n - 1)) for n in numbers)
        return (start + "".join(parts)).encode()
    config = copy.deepcopy(rng.choice(PARTS["valid"]))
    if not rng.randrange(4):
        _put_odd(config, rng)
    writers: list[Callable[[Any], str]] = [json.dumps, yaml.safe_dump, yaml.safe_dump]
    text = rng.choice(writers)(config)
    text = text if rng.randrange(10) else rng.choice(PARTS["known"])
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        text = _changed(text, rng)
    encoding = rng.choice(["utf-8"] * 20 + ["utf-8-sig", "utf-16", "utf-32-le", "utf-7"])
    return text.replace("\n", rng.choice(["\n"] * 9 + ["\r\n"])).encode(encoding)


def _put_odd(at: Any, rng: random.Random) -> None:
    """Replace a value at any depth."""
    key = rng.choice([*at]) if isinstance(at, dict) else rng.randrange(len(at))
    if at[key] and isinstance(at[key], dict | list) and rng.randrange(4):
        _put_odd(at[key], rng)
    else:
        at[key] = rng.choice(PARTS["odd"])


def _changed(text: str, rng: random.Random) -> str:
    """With a hostile line beside one of its lines, at its indentation, or with its end missing."""
    if not rng.randrange(8):
        return text[: rng.randrange(len(text) + 1)]
    lines = text.split("\n")
    added = rng.choice(PARTS["lines"])
    number = rng.randrange(len(lines))
    if text.startswith("{"):  # JSON: into one of its mappings
        start, key, rest = text.partition(rng.choice(['"kind"', '"token"', '"user": {', '"name"']))
        return f"{start}{added}, {key}{rest}"
    indent = " " * (len(lines[number]) - len(lines[number].lstrip(" -")))
    added = "\n".join(indent + line for line in added.split("\n"))
    lines.insert(number + rng.randrange(2), added)
    return "\n".join(lines)


def problem(content: bytes, read: Reader | None = None) -> str | None:
    """The rule that this input breaks, None if it breaks none. `read`: see `reader`."""
    peak = _peak_kib()
    started = time.thread_time()
    try:
        found = product.read_kubeconfig(content)
        text = repr(found)
    except ConfigurationError as error:
        found = None
        text = "".join(traceback.format_exception(error))
    except Exception as error:
        return f"it raises {type(error).__name__}"
    if time.thread_time() - started > _SECONDS:
        return f"it takes more than {_SECONDS} s of CPU"
    if _peak_kib() - peak > _KIB:
        return f"it takes more than {_KIB} KiB"
    if any(trace in text for trace in _TRACES):
        return "a secret is in the text of an error or value"
    if found is None:
        return None
    values = {"server": found.server, "tls-server-name": found.tls_server_name}
    values |= {"token": found.token, "certificate-authority-data": _base64(found.ca)}
    values["client-certificate-data"] = _base64(found.certificate)
    values["client-key-data"] = _base64(found.key)
    expected = {key: value for key, value in values.items() if value}
    for name, reads in (("PyYAML", _pyyaml), ("client-go", read or _shared_reader())):
        if reads(found.encoded()) != expected:
            return f"{name} reads other values than those of the allow-list"
    return None


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _pyyaml(content: bytes) -> dict[str, Any]:
    try:
        config = yaml.safe_load(content)
        [cluster] = config["clusters"]
        [user] = config["users"]
        [_] = config["contexts"]
        return {**cluster["cluster"], **user["user"]}
    except (yaml.YAMLError, LookupError, TypeError, ValueError) as error:
        return {"error": str(error)}


@contextmanager
def reader() -> Iterator[Reader]:
    """A function to the values that client-go takes from a kubeconfig; one process serves it."""
    program = build_reader(print)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests = process.stdin
        answers = process.stdout

        def read(content: bytes) -> dict[str, Any]:
            requests.write(struct.pack(">I", len(content)) + content)
            requests.flush()
            (length,) = struct.unpack(">I", answers.read(4))
            answer: dict[str, Any] = json.loads(answers.read(length))
            return answer

        yield read
        requests.close()


@functools.cache
def _shared_reader() -> Reader:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(reader())
