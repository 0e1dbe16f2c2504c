"""Requests to the router: HTTP CONNECT, parsed by an allow-list, and cluster DNS names. Pure.

Not here: connections and routes (`router`).
"""

import base64
import binascii
import re

from attrs import field, frozen

_REQUEST = re.compile(rb"CONNECT (\[[0-9A-Fa-f:.]+\]|[\w.-]{1,253}):([0-9]{1,5}) HTTP/1\.[01]")
_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_DOMAIN = ("svc", "cluster", "local")


class ConnectRefused(Exception):
    """The request is refused with this status; the text is for its sender."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@frozen
class Connect:
    """A parsed request."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)


def parse_request(head: bytes) -> Connect:
    """Parse the head of a CONNECT request. Raises Refused."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    found = _REQUEST.fullmatch(first)
    if found is None or not 0 < int(found[2]) < 65536:
        raise ConnectRefused(400, "send CONNECT HOST:PORT HTTP/1.1")
    user = password = ""
    for line in lines:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"proxy-authorization":
            user, password = _basic(value.strip())
    host = found[1].decode().strip("[]").rstrip(".").lower()
    return Connect(host, int(found[2]), user, password)


def _basic(value: bytes) -> tuple[str, str]:
    scheme, _, encoded = value.partition(b" ")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        text = ""
    if scheme.lower() != b"basic" or ":" not in text:
        raise ConnectRefused(400, "send Proxy-Authorization: Basic, with NAMESPACE:CREDENTIAL")
    user, _, password = text.partition(":")
    return user, password


def service_of(host: str, namespace: str) -> tuple[str, str] | None:
    """Return namespace and name of the Service with a cluster DNS name; None for another name.

    `namespace` completes a short name. Kubernetes documentation, "DNS for Services and Pods".
    """
    name, *rest = host.split(".")
    is_cluster_name = tuple(rest[1:]) in ((), _DOMAIN[:1], _DOMAIN)
    found = rest[0] if rest else namespace
    if not is_cluster_name or not found or not _LABEL.fullmatch(name):
        return None
    return found, name
