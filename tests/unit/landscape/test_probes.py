"""Readiness probes against local servers, hostile ones included."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from generic.testing.landscape.probes import succeeds


class Server:
    """Answers each connection with the same bytes, and keeps the received bytes."""

    def __init__(self, answer: bytes | None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.received: list[bytes] = []
        self._answer = answer
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                if self._answer is not None:
                    self.received.append(connection.recv(65536))
                    connection.sendall(self._answer)
                    connection.close()

    def close(self) -> None:
        with suppress(OSError):  # it is closed already
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            connection.close()


@pytest.fixture
def serve():
    servers: list[Server] = []

    def start(answer: bytes | None) -> Server:
        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def ports(port: int | None = None) -> Callable[[int | str], int | None]:
    """Return the port of a container's port 80, which is named http."""
    known: dict[int | str, int | None] = {80: port, "http": port}
    return known.get


def head(status: int) -> bytes:
    return b"HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n" % status


@pytest.mark.parametrize(
    ("status", "expected"), [(200, True), (302, True), (399, True), (401, False), (503, False)]
)
def test_the_status_decides(serve, status, expected):
    server = serve(head(status))
    assert succeeds({"httpGet": {"port": 80}}, ports(server.port)) is expected


def test_path_and_headers_are_those_of_the_spec(serve):
    server = serve(head(200))
    headers = [{"name": "Authorization", "value": "Bearer x"}]
    request = {"port": "http", "path": "/readyz?verbose", "httpHeaders": headers}
    assert succeeds({"httpGet": request}, ports(server.port))
    assert server.received[0].startswith(b"GET /readyz?verbose HTTP/1.1\r\n")
    assert b"Authorization: Bearer x\r\n" in server.received[0]


@pytest.mark.parametrize("answer", [b"", b"\x00" * 100, b"HTTP/1.1 \r\n\r\n", b"x" * 100_000])
def test_an_answer_that_is_not_http_is_a_failure(serve, answer):
    server = serve(answer)
    assert not succeeds({"httpGet": {"port": 80}}, ports(server.port))


def test_a_program_without_tls_fails_a_probe_with_tls(serve):
    server = serve(head(200))
    probe = {"httpGet": {"port": 80, "scheme": "HTTPS"}}
    assert not succeeds(probe, ports(server.port))


def test_a_silent_program_fails_after_the_timeout_of_the_spec(serve):
    server = serve(None)
    began = time.monotonic()
    assert not succeeds({"httpGet": {"port": 80}, "timeoutSeconds": 1}, ports(server.port))
    assert 0.9 < time.monotonic() - began < 4


@pytest.mark.parametrize("request_", [{"port": 80, "path": "/a b\r\nX: y"}, {"port": "none"}, {}])
def test_a_request_that_cannot_be_sent_is_a_failure(serve, request_):
    server = serve(head(200))
    assert not succeeds({"httpGet": {"path": "/", **request_}}, ports(server.port))
    assert server.received == []


def test_a_tcp_probe_needs_a_listener(serve):
    server = serve(None)
    probe = {"tcpSocket": {"port": 80}}
    assert succeeds(probe, ports(server.port))
    server.close()
    assert not succeeds(probe, ports(server.port))


@pytest.mark.parametrize("probe", [{}, {"exec": {"command": ["false"]}}, {"grpc": {"port": 1}}])
def test_other_probes_succeed_and_run_nothing(probe):
    assert succeeds(probe, ports())
