"""Requests that anyone who reaches the webhook server may send, and the rules that hold for each.

`request(rng)` generates one; `Target.problem` sends it over TLS to the product and says which rule
it breaks. Patches are applied by `patched`, which shares no code with the product.
"""

from __future__ import annotations

import base64
import copy
import ipaddress
import json
import logging
import random
import resource
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from typing import Any

import attrs
from prometheus_client import CollectorRegistry, generate_latest

from actuator.meta import Object, Raw
from actuator.v1alpha1 import Infrastructure, Network
from generic.kube.certificates import SERVER_AUTH, issue, new_authority, x509
from generic.kube.clock import SystemClock
from generic.kube.crds import crd
from generic.kube.timers import Timers
from generic.library.webhooks import AdmissionRequest, Webhook
from generic.library.webhooks.objects import Deployment
from generic.library.webhooks.server import WebhookServer, server_context
from generic.serving.httpserver import Address
from generic.serving.metrics.webhooks import WebhookMetrics
from tests.adversary import texts
from tests.adversary.inputs import MARK
from tests.adversary.judge import leaks

__all__ = ["Target", "patched", "request", "serving"]

_CLASSES: tuple[type[Object], ...] = (Deployment, Infrastructure, Network)
_SECONDS = 5.0
_KIB = 256 * 1024
_HOST = "127.0.0.1"
_FLOOD_KIB = 450 * 1024
_TOLD = (b"HTTP/1.1 200", b"HTTP/1.1 503")
_LONGEST = 8192
_PATH = "/webhooks/touch"
_SPEC: Raw = {
    "type": "acme",
    "providerConfig": {"password": MARK},
    "template": {"spec": {"containers": [{"name": "c", "args": ["--a=b"], "env": []}]}},
}
_SPECS = [
    crd(cls)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for cls in (Infrastructure, Network)
]


@attrs.frozen
class Request:
    """The bytes to send, and the review in them, if it is one."""

    sent: bytes
    review: Any = None


def request(rng: random.Random) -> Request:
    """A review with up to three odd values, as text with up to one fault, in a request likewise."""
    whole = _review(rng)
    obj = whole["request"]["object"]
    places = [
        whole,
        obj,
        obj,
        *[item for item in (obj["spec"], obj["metadata"]) if item != "@spec@"],
    ]
    for number in range(rng.choice([0, 1, 1, 1, 2, 3])):
        _put(rng.choice(places), f"@{number}@", rng)
    spec = texts.conforming(rng.choice(_SPECS), rng, type='"acme"')
    text = json.dumps(whole).replace('"@spec@"', spec)
    for number in range(3):
        text = text.replace(f'"@{number}@"', rng.choice((texts.document, texts.value))(rng))
    faulty = not rng.randrange(5)
    body = _faulty(text, rng) if faulty else text.encode()
    try:
        review = None if faulty else json.loads(text)
    except (ValueError, RecursionError):
        review = None
    if rng.randrange(6):
        return Request(_http(body), review)
    return Request(_odd_http(body, rng))


def _review(rng: random.Random) -> Raw:
    kind = rng.choice(_CLASSES).KIND
    meta: Raw = {"name": "n", "namespace": "ns", "labels": {"mark": MARK}, "annotations": {}}
    if not rng.randrange(8):
        meta["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    if not rng.randrange(8):
        meta["labels"]["act"] = rng.choice(["raise", "odd", "exit"])
    spec = "@spec@" if kind.name != "Deployment" and rng.randrange(3) else _SPEC
    obj = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec}
    operation = rng.choice(["CREATE", "CREATE", "UPDATE", "DELETE", "CONNECT"])
    asked = {
        "uid": f"{rng.random()}",
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "operation": operation,
        "object": obj,
        "oldObject": None if operation == "CREATE" else obj,
        "namespace": "ns",
        "userInfo": {"username": "system:serviceaccount:garden:gardenlet", "groups": []},
        "dryRun": False,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    found: Raw = copy.deepcopy(review)
    return found


def _put(at: Any, odd: str, rng: random.Random) -> None:
    """Replace a value at any depth, mostly deep ones."""
    key = rng.choice([*at]) if isinstance(at, dict) else rng.randrange(len(at))
    if at[key] and isinstance(at[key], dict | list) and rng.randrange(12):
        _put(at[key], odd, rng)
    else:
        at[key] = odd


def _faulty(text: str, rng: random.Random) -> bytes:
    encoded = text.encode()
    at = rng.randrange(len(text))
    return rng.choice(
        (
            encoded[:at],
            encoded[:at] + bytes([rng.randrange(256)]) + encoded[at:],
            b"\xef\xbb\xbf" + encoded,
            text.encode("utf-16"),
            encoded + encoded,
            b"[" * rng.choice([300, 100_000]),
            b'{"request":' * 50_000,
            encoded[:-1] + b',"request":null}',
            b'{"apiVersion":' + b"9" * 1_000_000 + b"}",
            b"",
        )
    )


def _http(body: bytes, start: str = f"POST {_PATH} HTTP/1.1", headers: str = "") -> bytes:
    type_ = "Content-Type: application/json"
    head = f"{start}\r\nHost: x\r\n{type_}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode("latin-1") + body


def _odd_http(body: bytes, rng: random.Random) -> bytes:
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    chunked = f"POST {_PATH} HTTP/1.1\r\nContent-Type: application/json\r\n".encode()
    transfer = b"Transfer-Encoding: chunked\r\n"
    large = "x" * rng.choice([10_000, 100_000])
    return rng.choice(
        (
            _http(body, f"GET {_PATH} HTTP/1.1"),
            _http(body, f"POST {_PATH}/../x HTTP/1.1"),
            _http(body, f"POST /{large} HTTP/1.1"),
            _http(body, f"POST {_PATH} HTTP/9.9"),
            _http(body, headers=f"X-Large: {large}\r\n"),
            _http(body, headers="X: y\r\n" * 20_000),
            _http(body, headers="Content-Length: 0\r\n"),
            _http(body, headers="Transfer-Encoding: chunked\r\n"),
            _http(body, headers="Expect: 100-continue\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"),
            _http(body).replace(b"Content-Length: ", b"Content-Length: -"),
            _http(body).replace(b"Content-Length: ", b"Content-Length: 9999999"),
            _http(body).replace(b"application/json", b"text/plain\x00"),
            chunked + transfer + b"\r\n" + chunks,
            chunked + transfer + b"\r\nffffffffffffffffff\r\n" + body,
            _http(body) * 2,
            body,
            bytes(rng.randrange(256) for _ in range(500)),
        )
    )


def touch(request: AdmissionRequest[Any]) -> Any:
    """Changes the object; or acts by its label `act`."""
    if request.new.metadata.deletion_timestamp is not None:
        raise AssertionError("an object under deletion reached the handler")
    act = request.new.metadata.labels.get("act")
    if act == "raise":
        raise ValueError(f"{request!r} {request.new}")
    if act == "exit":
        raise SystemExit(1)
    if act == "odd":
        return [object()]
    request.new.metadata.labels["seen"] = "yes"
    if isinstance(request.new, Deployment):
        request.new.spec.template.metadata.annotations["seen"] = "yes"
        for container in request.new.pod.containers:
            container.flags.append("--seen")
    return None


_HEALTHY = json.dumps(
    {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "healthy",
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "operation": "CREATE",
            "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "n"}},
        },
    }
).encode()


def _large(count: int) -> bytes:
    """A request with so many empty objects."""
    values = b",".join([b"{}"] * count)
    return _http(_HEALTHY.replace(b'"name"', b'"x": [%s], "name"' % values))


class _Collecting(logging.Handler):
    """Keeps the lines of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message, its fields and its traceback."""
        self.lines.append(f"{self.format(record)} {getattr(record, 'fields', '')}")


@attrs.define
class Target:
    """A running server of the product."""

    server: WebhookServer
    trust: ssl.SSLContext
    registry: CollectorRegistry
    logs: _Collecting = attrs.field(factory=_Collecting)

    def problem(self, sent: Request) -> str | None:
        """The rule that this request breaks, None if it breaks none."""
        peak = _peak_kib()
        began = time.monotonic()
        self.logs.lines.clear()
        answer = self._send(sent.sent)
        if time.monotonic() - began > _SECONDS:
            return f"it takes more than {_SECONDS} s"
        if _peak_kib() - peak > _KIB:
            return f"it takes more than {_KIB} KiB"
        logged = "".join(self.logs.lines)
        if leaks(answer.replace(_patch_of(answer), b"")) or leaks(logged.encode()):
            return f"a part of the object leaves: {logged}"
        if "Traceback" in logged or "deletion reached" in logged:
            return f"a mistake: {logged}"
        found = _judged(answer, sent.review)
        return found or self._sick()

    def end(self) -> str | None:
        """The rule that is broken in the end."""
        if leaks(generate_latest(self.registry)):
            return "a part of an object is in a metric"
        return self._flooded() or self._crowded()

    def _flooded(self) -> str | None:
        """Send large requests at the same time, of values that need much memory."""
        peak = _peak_kib()
        sent = [_large(count) for count in (1_900_000, *[170_000] * 10) * 2]
        with ThreadPoolExecutor(len(sent)) as pool:
            answers = [*pool.map(self._send, sent)]
        if odd := [answer for answer in answers if answer and not answer.startswith(_TOLD)]:
            return f"answered {odd[0][:100]!r} to one of many large requests"
        if (taken := _peak_kib() - peak) > _FLOOD_KIB:
            return f"{len(sent)} large requests take {taken} KiB"
        return self._sick()

    def _crowded(self) -> str | None:
        """Open more connections than there may be, which send one byte each."""
        with ExitStack() as stack, suppress(OSError):
            for _ in range(self.server.connections + 8):
                raw = socket.create_connection(("127.0.0.1", self.server.address.port), timeout=5)
                client = self.trust.wrap_socket(stack.enter_context(raw), server_hostname=_HOST)
                stack.enter_context(client).sendall(b"P")
            return next(filter(None, (self._sick() for _ in range(20))), None)
        return "a connection is refused while others send nothing"

    def _sick(self) -> str | None:
        answer = self._send(_http(_HEALTHY))
        return None if b'"patch"' in answer else f"the next request fails: {answer[:300]!r}"

    def _send(self, sent: bytes) -> bytes:
        """Send, close this direction, and return the whole answer."""
        address = ("127.0.0.1", self.server.address.port)
        received = bytearray()
        with socket.create_connection(address, timeout=2 * _SECONDS) as raw:
            try:
                with self.trust.wrap_socket(raw, server_hostname="127.0.0.1") as connection:
                    connection.sendall(sent)
                    socket.socket.shutdown(connection, socket.SHUT_WR)
                    while data := connection.recv(65536):
                        received += data
            except OSError:
                pass  # refused early: what was received counts
        return bytes(received)


def _judged(answer: bytes, review: Any) -> str | None:
    status, _, rest = answer.partition(b"\r\n")
    if status and not status.startswith((b"HTTP/1.1 200", b"HTTP/1.1 4", b"HTTP/1.1 505")):
        return f"answered {status!r}"
    if review is not None and not status:
        return "no answer"
    if not status.startswith(b"HTTP/1.1 200"):
        return None
    body = rest.partition(b"\r\n\r\n")[2]
    if review is None:
        return None
    response = json.loads(body)["response"]
    asked = review["request"]
    if response["uid"] != asked["uid"] or response["allowed"] not in (True, False):
        return f"an invalid response: {response}"
    text = "".join([response.get("status", {}).get("message", ""), *response.get("warnings", ())])
    if len(text) > _LONGEST or "Traceback" in text or not text.isprintable():
        return f"no readable message: {text}"
    return _wrong_patch(response, asked) if "patch" in response else None


def _wrong_patch(response: Raw, asked: Raw) -> str | None:
    operations = json.loads(base64.b64decode(response["patch"]))
    try:
        after = patched(asked["object"], operations)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return f"a patch that cannot be applied: {error!r}, {operations}"
    if after["metadata"]["labels"]["seen"] != "yes":
        return f"a patch without effect: {operations}"
    return None


def patched(document: Any, operations: list[Raw]) -> Any:
    """The document after a JSON patch. Raises LookupError, TypeError or ValueError."""
    found = copy.deepcopy(document)
    for operation in operations:
        *way, last = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        ]
        at = found
        for part in way:
            at = at[int(part) if isinstance(at, list) else part]
        if isinstance(at, list):
            index = len(at) if last == "-" else int(last)
            if operation["op"] == "add":
                at.insert(index, operation["value"])
            elif operation["op"] == "replace":
                at[index] = operation["value"]
            else:
                del at[index]
        elif operation["op"] == "remove":
            del at[last]
        elif operation["op"] == "replace" and last not in at:
            raise LookupError(last)
        else:
            at[last] = operation["value"]
    return found


def _patch_of(answer: bytes) -> bytes:
    """The patch in an answer, which may have values of the object."""
    try:
        response = json.loads(answer.partition(b"\r\n\r\n")[2])["response"]
    except (ValueError, LookupError, TypeError):
        return b"\r\n\r\n\r\n"
    return str(response.get("patch", "\r\n\r\n\r\n")).encode()


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextmanager
def serving() -> Iterator[Target]:
    """A server on this host."""
    now = SystemClock().now()
    clock = SystemClock()
    authority = new_authority("adversary", now, timedelta(days=1))
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    pair = issue(authority, "x", now, timedelta(days=1), usages=[SERVER_AUTH], names=names)
    webhook = Webhook(
        name="touch", kinds=_CLASSES, handle=touch, mutating=True, failure_policy="Ignore"
    )
    timers = Timers("adversary", clock)
    registry = CollectorRegistry()
    client: Any = None  # the handler reads nothing
    metrics = WebhookMetrics(registry, [webhook.name])
    server = WebhookServer([webhook], Address("127.0.0.1", 0), client, timers, metrics)
    server.tls = server_context(pair)
    server.start()
    trust = ssl.create_default_context(cadata=authority.certificate.decode())
    target = Target(server, trust, registry)
    log = logging.getLogger("generic")
    log.addHandler(target.logs)
    try:
        yield target
    finally:
        log.removeHandler(target.logs)
        server.stop(1)
        timers.stop()
