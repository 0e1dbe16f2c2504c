"""The router: it leads Services to local ports, for the programs of this run only."""

import os
import socket
import stat
import threading
import time
from base64 import b64encode
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from generic.library.programs.errors import EnvtestError
from generic.testing.landscape import router as module
from generic.testing.landscape.connects import Connect, ConnectRefused, parse_request, service_of
from generic.testing.landscape.router import Router
from tests.support.cluster.harness import eventually

SECONDS = 10.0


class Program:
    """A local server that answers each connection with its name, and then the bytes it reads."""

    def __init__(self, name: bytes) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.name = name
        self.ended = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        except OSError:
            pass

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.sendall(self.name)
                while data := connection.recv(65536):
                    connection.sendall(data)
                connection.sendall(b" and its end")
            except OSError:
                pass
        self.ended += 1

    def close(self) -> None:
        with suppress(OSError):  # it is closed already
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class World:
    """A router with a lookup, and clients of it."""

    def __init__(self, folder) -> None:
        self.addresses = {"10.0.0.7": ("garden", "etcd")}
        self.router = Router(self._lookup)
        self.uds = folder / "egress"
        self.router.start(self.uds)
        self._closing: list[Any] = []

    def _lookup(self, host):
        if host == "fails.example.com":
            raise RuntimeError("lookup is broken")
        return self.addresses.get(host)

    def program(self, name: bytes = b"program") -> Program:
        program = Program(name)
        self._closing.append(program)
        return program

    def tcp(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.router.port), SECONDS)
        self._closing.append(client)
        return client

    def unix(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        self._closing.append(client)
        client.settimeout(SECONDS)
        client.connect(str(self.uds))
        return client

    def credential(self, namespace: str = "") -> bytes:
        url = urlsplit(self.router.proxy_url(namespace))
        text = f"{url.username}:{url.password}"
        return b"Proxy-Authorization: Basic " + b64encode(text.encode()) + b"\r\n"

    def close(self) -> None:
        for item in self._closing:
            item.close()
        self.router.stop()


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def head_of(client: socket.socket) -> bytes:
    """The head of the answer, without the rest."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = client.recv(1)
        assert piece, f"the connection ended after {head!r}"
        head += piece
    return head


def rest_of(client: socket.socket) -> bytes:
    data = b""
    while piece := client.recv(65536):
        data += piece
    return data


def connected(client: socket.socket, target: bytes, headers: bytes = b"") -> bytes:
    """The status line of the answer to CONNECT."""
    client.sendall(b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
    return head_of(client).split(b"\r\n")[0].removeprefix(b"HTTP/1.1 ")


def is_ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    "target",
    [
        b"etcd.garden:443",
        b"etcd.garden.svc:443",
        b"etcd.garden.svc.cluster.local:443",
        b"ETCD.garden.svc.cluster.local.:443",
        b"10.0.0.7:443",
    ],
)
def test_a_service_is_reached_by_dns_name_and_by_cluster_ip(world, target):
    world.router.replace("garden", {"etcd": {None: [world.program(b"etcd").port]}})
    client = world.unix()
    assert connected(client, target) == b"200 Connection established"
    assert client.recv(4) == b"etcd"


def test_a_short_name_is_resolved_in_the_namespace_of_the_proxy_user(world):
    for namespace in ("shoot--a--b", "shoot--c--d"):
        world.router.replace(
            namespace, {"kube-apiserver": {None: [world.program(namespace.encode()).port]}}
        )
    client = world.tcp()
    headers = world.credential("shoot--c--d")
    assert connected(client, b"kube-apiserver:443", headers) == b"200 Connection established"
    assert client.recv(11) == b"shoot--c--d"


@pytest.mark.parametrize(
    "target",
    [
        b"other.garden:443",
        b"etcd:443",
        b"etcd.garden.example.com:443",
        b"10.0.0.8:443",
        b"fails.example.com:443",
        b"[::1]:443",
    ],
)
def test_there_is_no_way_to_a_target_without_a_route(world, target):
    world.router.replace("garden", {"etcd": {None: [world.program().port]}})
    client = world.unix()
    assert connected(client, target) == b"502 Bad Gateway"
    assert b"no route to" in rest_of(client)


def test_ports_of_the_machine_that_no_route_names_are_out_of_reach(world):
    """An API server's proxy subresources would open them to everyone with the right to use one."""
    program = world.program()
    for host in (b"127.0.0.1", b"localhost", b"[::1]", b"0.0.0.0"):
        client = world.unix()
        assert connected(client, b"%s:%d" % (host, program.port)) == b"502 Bad Gateway"


def test_a_port_of_a_service_has_its_own_route(world):
    ports = {None: [world.program(b"any").port], 443: [world.program(b"443").port]}
    world.router.replace("garden", {"etcd": ports})
    answers = []
    for port in (b"443", b"8080"):
        client = world.unix()
        connected(client, b"etcd.garden:" + port)
        answers.append(client.recv(3))
    assert answers == [b"443", b"any"]


def test_the_first_program_serves_and_the_others_follow_it(world):
    old = world.program(b"old")
    new = world.program(b"new")
    world.router.replace("garden", {"etcd": {None: [new.port, old.port]}})

    def answer() -> bytes:
        client = world.unix()
        connected(client, b"etcd.garden:443")
        return client.recv(3)

    assert answer() == b"new"
    new.close()  # it crashed, which the one that sets the routes does not know yet
    assert answer() == b"old"
    world.router.replace("garden", {"etcd": {None: [old.port]}})
    assert world.router.find("garden", "etcd", 443) == [old.port]
    world.router.replace("garden", {})
    assert connected(world.unix(), b"etcd.garden:443") == b"502 Bad Gateway"


def test_a_program_that_does_not_listen_is_a_bad_gateway(world):
    program = world.program()
    program.close()
    world.router.replace("garden", {"etcd": {None: [program.port]}})
    client = world.unix()
    assert connected(client, b"etcd.garden:443") == b"502 Bad Gateway"
    assert b"does not accept connections" in rest_of(client)


@pytest.mark.parametrize(
    "headers",
    [
        b"",
        b"Proxy-Authorization: Basic " + b64encode(b"garden:guessed") + b"\r\n",
        b"Proxy-Authorization: Basic " + b64encode(b"garden:") + b"\r\n",
    ],
)
def test_a_second_local_client_without_the_credential_is_refused(world, headers):
    world.router.replace("garden", {"etcd": {None: [world.program().port]}})
    client = world.tcp()
    assert connected(client, b"etcd.garden:443", headers) == b"407 Proxy Authentication Required"


def test_the_credential_of_another_run_is_refused(world, tmp_path):
    world.router.replace("garden", {"etcd": {None: [world.program().port]}})
    other = Router(lambda _host: None)
    headers = b"Proxy-Authorization: Basic " + b64encode(
        urlsplit(other.proxy_url("garden")).netloc.partition("@")[0].encode()
    )
    answer = connected(world.tcp(), b"etcd.garden:443", headers + b"\r\n")
    assert answer == b"407 Proxy Authentication Required"


def test_only_the_user_can_open_the_unix_socket(world):
    mode = world.uds.stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    assert world.uds.stat().st_uid == os.getuid()


def test_the_socket_of_a_killed_router_is_replaced(world):
    again = Router(lambda _host: None)
    again.start(world.uds)
    again.replace("garden", {"etcd": {None: [world.program().port]}})
    try:
        assert connected(world.unix(), b"etcd.garden:443") == b"200 Connection established"
    finally:
        again.stop()


def test_a_socket_that_cannot_be_made_is_an_error_with_its_path(tmp_path):
    path = tmp_path / ("long" * 40)
    with pytest.raises(EnvtestError, match=r"cannot listen on .*longlong"):
        Router(lambda _host: None).start(path)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET http://etcd.garden/ HTTP/1.1\r\n\r\n",
        b"CONNECT etcd.garden HTTP/1.1\r\n\r\n",
        b"CONNECT etcd.garden:0 HTTP/1.1\r\n\r\n",
        b"CONNECT etcd.garden:65536 HTTP/1.1\r\n\r\n",
        b"CONNECT etcd.garden:443\r\n\r\n",
        b"CONNECT a b:443 HTTP/1.1\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nProxy-Authorization: Basic ???\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nProxy-Authorization: Bearer dDp0\r\n\r\n",
        b"\x00\xff\r\n\r\n",
    ],
)
def test_a_request_that_is_no_connect_is_refused(world, request_):
    client = world.unix()
    client.sendall(request_)
    assert head_of(client).startswith(b"HTTP/1.1 400 ")


def test_a_huge_head_is_refused_with_an_answer_that_its_sender_receives(world):
    client = world.tcp()
    client.sendall(b"CONNECT etcd.garden:443 HTTP/1.1\r\nX: " + b"x" * (500 * module.HEAD_BYTES))
    assert head_of(client).startswith(b"HTTP/1.1 400 ")
    assert b"more than" in rest_of(client)


def test_a_slow_head_ends_after_its_time(world, monkeypatch):
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.2)
    client = world.tcp()
    client.sendall(b"CONNECT etcd")
    assert b"took more than 0.2 s" in rest_of(client)


def test_many_silent_clients_do_not_keep_others_out(world, monkeypatch):
    monkeypatch.setattr(module, "MAX_UNKNOWN", 4)
    world.router.replace("garden", {"etcd": {None: [world.program().port]}})
    client = world.tcp()
    headers = world.credential()
    assert connected(client, b"etcd.garden:443", headers) == b"200 Connection established"
    silent = [world.tcp() for _ in range(8)]
    assert is_ended(silent[0])
    assert connected(world.tcp(), b"etcd.garden:443", headers) == b"200 Connection established"
    assert client.recv(7) == b"program"
    client.sendall(b"still here")  # it has sent the credential, so it is not one of them
    assert client.recv(10) == b"still here"


def test_a_client_that_ended_its_side_receives_the_whole_answer(world):
    program = world.program(b"x" * 3_000_000)
    world.router.replace("garden", {"etcd": {None: [program.port]}})
    client = world.unix()
    client.sendall(b"CONNECT etcd.garden:443 HTTP/1.1\r\n\r\nsent with the request")
    client.shutdown(socket.SHUT_WR)
    head_of(client)
    assert rest_of(client) == program.name + b"sent with the request and its end"
    assert eventually(lambda: program.ended == 1)


def test_a_silent_rest_of_a_half_closed_connection_ends_after_its_time(world, monkeypatch):
    monkeypatch.setattr(module, "HALF_CLOSED_SECONDS", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))  # accepts, and never answers
    with listener:
        world.router.replace("garden", {"etcd": {None: [listener.getsockname()[1]]}})
        client = world.unix()
        connected(client, b"etcd.garden:443")
        client.shutdown(socket.SHUT_WR)
        began = time.monotonic()
        assert rest_of(client) == b""
        assert time.monotonic() - began < SECONDS / 2


def test_the_end_of_a_client_ends_the_connection_to_the_program(world):
    program = world.program()
    world.router.replace("garden", {"etcd": {None: [program.port]}})
    client = world.unix()
    connected(client, b"etcd.garden:443")
    client.close()
    assert eventually(lambda: program.ended == 1)


def test_stop_ends_everything(world):
    program = world.program()
    world.router.replace("garden", {"etcd": {None: [program.port]}})
    open_ = world.unix()
    waiting = world.tcp()
    connected(open_, b"etcd.garden:443")
    assert open_.recv(7) == b"program"
    before = threading.active_count()
    world.router.stop()
    world.router.stop()
    assert is_ended(open_)
    assert is_ended(waiting)
    assert threading.active_count() < before
    with pytest.raises(OSError, match=r"refused|No such file"):  # later versions remove it
        world.unix()
    with pytest.raises(ConnectionRefusedError):
        world.tcp()
    assert eventually(lambda: program.ended == 1)


def test_the_credential_is_in_no_repr_and_no_error():
    request = parse_request(
        b"CONNECT x:1 HTTP/1.1\r\nproxy-authorization: basic "
        + b64encode(b"n:secret")
        + b"\r\n\r\n"
    )
    assert request == Connect("x", 1, "n", "secret")
    assert "secret" not in repr(request)
    with pytest.raises(ConnectRefused) as refused:
        Router(lambda _host: None).authorize(request)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "namespace", "service"),
    [
        ("a", "n", ("n", "a")),
        ("a", "", None),
        ("a.b", "n", ("b", "a")),
        ("a.b.svc", "", ("b", "a")),
        ("a.b.svc.cluster.local", "", ("b", "a")),
        ("a.b.svc.cluster", "n", None),
        ("a.b.c", "n", None),
        ("a.b.svc.example.com", "n", None),
        ("10.0.0.1", "n", None),
        ("::1", "n", None),
        ("", "n", None),
    ],
)
def test_names_of_services(host, namespace, service):
    assert service_of(host, namespace) == service
