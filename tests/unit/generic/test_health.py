import http.client
import socket
import threading
import time

import pytest

from actuator.errors import ConfigurationError
from generic.serving.health import HealthServer
from generic.serving.httpserver import Address, parse_address

FINE = {"workers": lambda: None, "streams": lambda: None}
BROKEN = {**FINE, "streams": lambda: "nothing heard for 200 s"}
LOOPBACK = Address("127.0.0.1", 0)


@pytest.fixture
def serve():
    """Starts a server for this test."""
    started = []

    def start(**pages) -> HealthServer:
        server = HealthServer(LOOPBACK, **pages)
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


def ask(server: HealthServer, path: str, method: str = "GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8081", Address("127.0.0.1", 8081)),
        (":8081", Address("", 8081)),
        ("[::1]:0", Address("::1", 0)),
        ("localhost:80", Address("localhost", 80)),
        ("0", None),
        ("", None),
    ],
)
def test_an_address_is_read_as_in_go(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["8081", "host", "host:", "host:http", ":70000", "::1:80", "-1"])
def test_an_invalid_address_is_refused_with_the_valid_form(text):
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        parse_address(text)


def test_it_is_healthy_when_every_check_passes(serve):
    server = serve(healthz=FINE, readyz=FINE)
    assert ask(server, "/healthz")[:2] == (200, "ok\n")
    assert ask(server, "/readyz")[:2] == (200, "ok\n")


def test_each_failed_check_is_named_with_its_reason(serve):
    server = serve(healthz=FINE, readyz=BROKEN)
    assert ask(server, "/healthz")[0] == 200
    status, body, _ = ask(server, "/readyz")
    assert status == 503
    assert body == "[+]workers ok\n[-]streams failed: nothing heard for 200 s\nnot ok\n"


def test_verbose_lists_the_checks_that_pass_too(serve):
    assert ask(serve(readyz=FINE), "/readyz?verbose")[:2] == (
        200,
        "[+]workers ok\n[+]streams ok\nok\n",
    )


def test_remarks_are_shown_beside_the_checks_of_readyz_and_fail_nothing(serve):
    server = serve(healthz=FINE, readyz=FINE, remarks=lambda: ["machines: absent"])
    assert ask(server, "/readyz")[:2] == (200, "ok\n")
    listed = "[+]workers ok\n[+]streams ok\n"
    assert ask(server, "/readyz?verbose")[:2] == (200, f"{listed}[i]machines: absent\nok\n")
    assert ask(server, "/healthz?verbose")[:2] == (200, f"{listed}ok\n")


def test_a_check_that_raises_has_failed(serve):
    status, body, _ = ask(serve(healthz={"division": lambda: str(1 // 0)}), "/healthz")
    assert status == 503
    assert "[-]division failed: ZeroDivisionError" in body


def test_metrics_are_served_as_they_are(serve):
    server = serve(metrics=lambda: (b"up 1\n", "text/plain; version=1.0.0"))
    status, body, headers = ask(server, "/metrics")
    assert (status, body) == (200, "up 1\n")
    assert headers["Content-Type"] == "text/plain; version=1.0.0"


def test_metrics_that_cannot_be_read_are_a_500_and_the_server_goes_on(serve):
    server = serve(healthz=FINE, metrics=lambda: 1 // 0)
    assert ask(server, "/metrics")[0] == 500
    assert ask(server, "/healthz")[0] == 200


def test_a_path_without_handler_is_not_found(serve):
    server = serve(healthz=FINE)
    for path in ("/readyz", "/metrics", "/", "/healthz/../etc/passwd"):
        assert ask(server, path)[0] == 404


def test_head_has_the_status_and_no_body(serve):
    status, body, headers = ask(serve(readyz=BROKEN), "/readyz", "HEAD")
    assert (status, body) == (503, "")
    assert int(headers["Content-Length"]) > 0


def test_a_connection_serves_several_requests(serve):
    server = serve(healthz=FINE)
    connection = http.client.HTTPConnection("127.0.0.1", server.address.port, timeout=30)
    for path, status in (("/healthz", 200), ("/other", 404), ("/healthz", 200)):
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.status, answer.will_close) == (status, False)
        answer.read()
    connection.close()


def test_other_methods_are_refused(serve):
    assert ask(serve(healthz=FINE), "/healthz", "POST")[0] == 405
    assert ask(serve(healthz=FINE), "/healthz", "PUT")[0] == 501


@pytest.mark.parametrize("target", ["http://[", "//[", "//[::1]x/", "?", "*", "/%", "/healthz/["])
def test_an_odd_target_has_no_page_and_logs_nothing(serve, target, caplog):
    address = ("127.0.0.1", serve(healthz=FINE).address.port)
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 404 ")
    assert not caplog.records


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\n"])
def test_idle_and_slow_connections_do_not_keep_a_probe_out(serve, sent):
    server = serve(healthz=FINE)
    address = ("127.0.0.1", server.address.port)
    before = set(threading.enumerate())  # other tests' servers may still be ending
    idle = [
        socket.create_connection(address, timeout=5) for _ in range(HealthServer.connections * 3)
    ]
    try:
        for connection in idle[-HealthServer.connections :]:
            connection.sendall(sent)
        assert ask(server, "/healthz")[0] == 200
        ours = set(threading.enumerate()) - before
        alive = [t for t in ours if t.name == "http"]
        assert len(alive) <= HealthServer.connections * 2
    finally:
        for connection in idle:
            connection.close()


def test_a_port_that_is_taken_is_one_clear_sentence(serve):
    port = serve(healthz=FINE).address.port
    with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}: .*in use"):
        HealthServer(Address("127.0.0.1", port), healthz=FINE).start()


def test_all_addresses_include_ipv4_and_ipv6():
    server = HealthServer(Address("", 0), healthz=FINE)
    server.start()
    try:
        assert ask(server, "/healthz")[0] == 200
        if socket.has_dualstack_ipv6():
            socket.create_connection(("::1", server.address.port), timeout=5).close()
    finally:
        server.stop()


def test_no_server_listens_after_stop(serve):
    server = serve(healthz=FINE)
    started = time.monotonic()
    server.stop()
    assert time.monotonic() - started < 10
    with pytest.raises(OSError):
        ask(server, "/healthz")
