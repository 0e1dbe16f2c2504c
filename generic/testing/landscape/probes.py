"""Readiness probes of a pod's spec, sent to the local port in place of the container's.

A program on the loopback address has no certificate for it, so none is verified. Probes that would
run a program in the container, and gRPC probes, succeed.
Kubernetes documentation, "Configure Liveness, Readiness and Startup Probes".
"""

import http.client
import socket
import ssl
from collections.abc import Callable
from contextlib import closing

from actuator.meta import Raw
from generic.testing.envtest.servers import HOST

_MAX_SECONDS = 5.0


def succeeds(probe: Raw, local_port: Callable[[int | str], int | None]) -> bool:
    """Return whether a probe succeeds; `local_port` maps a container's port, by number or name."""
    request = probe.get("httpGet") or probe.get("tcpSocket")
    if not request:
        return True
    port = local_port(request.get("port", 0))
    seconds = min(float(probe.get("timeoutSeconds") or 1), _MAX_SECONDS)
    try:
        if port is None:
            return False
        if "tcpSocket" in probe:
            socket.create_connection((HOST, port), seconds).close()
            return True
        return 200 <= _status(request, port, seconds) < 400
    except (OSError, ValueError, http.client.HTTPException):
        return False


def _status(request: Raw, port: int, seconds: float) -> int:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    is_tls = str(request.get("scheme") or "").upper() == "HTTPS"
    with closing(
        http.client.HTTPSConnection(HOST, port, timeout=seconds, context=tls)
        if is_tls
        else http.client.HTTPConnection(HOST, port, timeout=seconds)
    ) as connection:
        headers = {
            http_header["name"]: http_header["value"]
            for http_header in request.get("httpHeaders") or ()
        }
        connection.request("GET", str(request.get("path") or "/"), headers=headers)
        return connection.getresponse().status
