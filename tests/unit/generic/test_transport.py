"""The HTTP transport against servers that answer in every way, with TLS and without."""

import base64
import gc
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from actuator import Resource
from actuator.errors import ApiError, Unavailable
from generic.kube import connecting
from generic.kube.client import Silence, connect
from generic.kube.kubeconfig import read_kubeconfig
from generic.kube.transport import HttpTransport
from generic.testing.envtest.certificates import LocalAuthority

NAMESPACES = Resource("v1", "namespaces", namespaced=False)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Server:
    """Runs `script(server, connection)` for each connection, with TLS if there is a context."""

    def __init__(self, script, tls=None):
        self.script = script
        self.tls = tls
        self.requests = []
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with suppress(OSError):
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            self.connections.append(connection)
            self.script(self, connection)
        connection.close()

    def read(self, connection):
        """Read one request, and return its target. Raises OSError at the end of the connection."""
        request = b""
        while b"\r\n\r\n" not in request:
            received = connection.recv(65536)
            if not received:
                raise OSError("the client closed the connection")
            request += received
        head, _, body = request.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        while len(body) < int(fields.get("Content-Length", 0)):
            body += connection.recv(65536)
        line = head.decode().split("\r\n")[0]
        self.requests.append((line, fields, body))
        return line.split()[1]

    def close(self):
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)


def answering(*answers):
    """Answer the requests of each connection in this order, then close it."""

    def script(server, connection):
        for answer in answers:
            server.read(connection)
            connection.sendall(answer)

    return script


def endless(answer):
    def script(server, connection):
        while True:
            server.read(connection)
            connection.sendall(answer)

    return script


@pytest.fixture
def start():
    servers = []
    gc.freeze()  # else each collection below looks at the whole suite's objects

    def started(script, tls=None):
        servers.append(Server(script, tls))
        return servers[-1]

    yield started
    for server in servers:
        server.close()
    gc.collect()  # an unclosed socket fails the test


@pytest.fixture(scope="module")
def authority():
    return LocalAuthority.new("transport")


@pytest.fixture
def secured(authority, tmp_path):
    """The TLS context of a server for these hosts."""

    def context(*hosts, ca=None):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (tmp_path / "k").unlink(missing_ok=True)
        (ca or authority).serving(hosts or ("127.0.0.1",)).save(tmp_path / "c", tmp_path / "k")
        tls.load_cert_chain(tmp_path / "c", tmp_path / "k")
        return tls

    return context


@pytest.fixture
def client(authority, tmp_path, monkeypatch):
    """A client of a TLS server; without a proxy."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    def connected(server, path="", pair=None, name="", **options):
        ca = base64.b64encode(authority.key_pair.certificate).decode()
        url = f"https://127.0.0.1:{server.port}{path}"
        cluster = {"server": url, "certificate-authority-data": ca}
        if name:
            cluster["tls-server-name"] = name
        user = {"token": "a-token"}
        if pair is not None:
            certificate, key = (base64.b64encode(file).decode() for file in pair)
            user = {"client-certificate-data": certificate, "client-key-data": key}
        config = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        (tmp_path / "config").write_text(json.dumps(config))
        return connect(tmp_path / "config", **options)

    return connected


def plain(server, connections=4):
    return HttpTransport(
        f"http://127.0.0.1:{server.port}", ssl.create_default_context(), "", connections
    )


def ask(sender, method="GET", target="/", headers=None, body=None, timeout=5.0):
    """Return status, headers and body."""
    response = sender.request(method, target, headers or {}, body, timeout)
    try:
        return response.status, response.headers, b"".join(response.chunks())
    finally:
        response.close()


def test_requests_use_one_connection_after_another(start, secured, client):
    server = start(endless(OK), secured())
    asked = client(server, "/prefix")
    for _ in range(3):
        asked.get(NAMESPACES, "a")
    asked.create(NAMESPACES, {"metadata": {"name": "é"}})
    assert len(server.connections) == 1
    line, fields, body = server.requests[0]
    assert line == "GET /prefix/api/v1/namespaces/a HTTP/1.1"
    assert fields["Host"] == f"127.0.0.1:{server.port}"
    assert fields["Authorization"] == "Bearer a-token"
    assert (fields["Accept-Encoding"], body) == ("identity", b"")
    line, fields, body = server.requests[-1]
    assert line == "POST /prefix/api/v1/namespaces?fieldManager=actuator HTTP/1.1"
    assert body == '{"metadata":{"name":"é"}}'.encode()


def test_the_connection_used_last_is_used_first_and_the_number_of_idle_ones_is_bounded(start):
    barrier = threading.Barrier(3)

    def script(server, connection):
        server.read(connection)
        with suppress(threading.BrokenBarrierError):
            barrier.wait(10)
        connection.sendall(OK)
        endless(OK)(server, connection)

    server = start(script)
    sender = plain(server, connections=2)
    threads = [threading.Thread(target=ask, args=(sender,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.connections) == 3
    assert len(sender._idle) == 2
    last = sender._idle[-1]
    ask(sender)
    assert sender._idle[-1] is last
    assert len(server.connections) == 3


@pytest.mark.parametrize("end", ["closed", "garbage"])
def test_an_idle_connection_that_the_server_ended_is_replaced(start, end):
    def script(server, connection):
        server.read(connection)
        connection.sendall(OK)
        if end == "garbage":
            time.sleep(0.05)
            connection.sendall(OK)
            server.read(connection)

    server = start(script)
    sender = plain(server)
    for number in range(1, 4):
        assert ask(sender)[0] == 200
        assert len(server.connections) == number
        time.sleep(0.1)


@pytest.mark.parametrize("kept", [False, True])
def test_a_request_without_an_answer_is_not_repeated(start, secured, client, kept):
    def script(server, connection):
        if kept:
            server.read(connection)
            connection.sendall(OK)
        server.read(connection)

    server = start(script, secured())
    asked = client(server)
    if kept:
        asked.get(NAMESPACES, "a")
    with pytest.raises(
        Unavailable, match="GET /api/v1/namespaces/b: ConnectionError: the server c"
    ):
        asked.get(NAMESPACES, "b")
    assert [line.split()[1][-1] for line, _, _ in server.requests] == ["a", "b"][not kept :]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (OK, b"{}"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nLink: x\r\n\r\n" + OK, b"{}"),
        (CHUNKED + b"1\r\n{\r\n1;ext=1\r\n}\r\n0\r\nTrailer: x\r\n\r\n", b"{}"),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", b""),
    ],
    ids=["length", "204", "304", "1xx", "chunked", "empty"],
)
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_an_answer_is_read_however_it_arrives_and_its_connection_is_kept(
    start, answer, expected, piece
):
    def script(server, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            server.read(connection)
            for begin in range(0, len(answer), piece):
                connection.sendall(answer[begin : begin + piece])

    server = start(script)
    sender = plain(server)
    for _ in range(2):
        status, headers, body = ask(sender)
        assert (status >= 200, body) == (True, expected)
        assert "link" not in headers
    assert len(server.connections) == 1


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
    ],
    ids=["until-close", "connection-close", "http-1.0"],
)
def test_a_connection_that_the_server_ends_is_not_kept(start, answer, expected):
    server = start(answering(answer))
    sender = plain(server)
    for number in (1, 2):
        assert ask(sender)[2] == expected
        assert len(server.connections) == number
    assert not sender._idle


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        CHUNKED + b"5\r\nhalf",
        CHUNKED + b"4\r\nhalf\r\n",
        CHUNKED + b"zz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        OK + OK,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 50_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000,
        CHUNKED + b"2\r\n{}\r\n0\r\nX: " + b"x" * 200_000,
        CHUNKED + b"1;" + b"x" * 200_000,
    ],
)
def test_an_answer_that_is_cut_or_not_http_is_an_error_of_the_connection(start, answer):
    server = start(answering(answer))
    sender = plain(server)
    with pytest.raises(ConnectionError):
        ask(sender)
    assert not sender._idle


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: y", "/\x00", "/é"])
def test_a_target_cannot_add_a_header(start, target):
    server = start(endless(OK))
    with pytest.raises(ConnectionError, match="character that HTTP does not allow"):
        ask(plain(server), target=target)
    assert server.requests == []


def test_a_header_cannot_add_another(start):
    server = start(endless(OK))
    with pytest.raises(ConnectionError, match="character that HTTP does not allow") as caught:
        ask(plain(server), headers={"Authorization": "Bearer secret\r\nX: y"})
    assert "secret" not in str(caught.value)
    assert server.requests == []


def test_repeated_headers_are_joined(start):
    server = start(
        endless(b"HTTP/1.1 200 OK\r\nWarning: a\r\nwarning: b\r\nContent-Length: 0\r\n\r\n")
    )
    assert ask(plain(server))[1]["warning"] == "a, b"


def test_a_large_body_is_sent_and_read_whole(start, secured, client):
    text = "x" * 3_000_000
    answer = json.dumps({"text": text}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer)
    server = start(endless(head + answer), secured())
    assert client(server).create(NAMESPACES, {"metadata": {}, "text": text}) == {"text": text}
    assert json.loads(server.requests[0][2])["text"] == text


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
def test_a_server_that_stops_sending_is_silent(start, secured, client, sent):
    release = threading.Event()

    def script(server, connection):
        server.read(connection)
        connection.sendall(sent)
        release.wait(30)

    server = start(script, secured())
    began = time.monotonic()
    with pytest.raises(Silence, match="GET /api/v1/namespaces/a: TimeoutError: ") as caught:
        client(server).within(0.2).get(NAMESPACES, "a")
    release.set()
    assert time.monotonic() - began < 10
    assert "object at 0x" not in str(caught.value)


@pytest.mark.parametrize("sent", [b"HTTP/1.1 200 OK\r\nX: ", CHUNKED])
def test_a_server_that_sends_forever_ends_with_the_timeout(start, secured, client, sent, tmp_path):
    """Its headers for every client, its body for the client of a tenant's server."""
    piece = b"1\r\n \r\n" if sent is CHUNKED else b"x"

    def script(server, connection):
        server.read(connection)
        connection.sendall(sent)
        for _ in range(600):
            connection.sendall(piece)
            time.sleep(0.05)

    client(start(script, secured()))
    asked = connect(read_kubeconfig((tmp_path / "config").read_bytes()))
    began = time.monotonic()
    with pytest.raises(Unavailable):
        asked.within(0.3).get(NAMESPACES, "a")
    assert time.monotonic() - began < 10


def test_a_connection_takes_no_longer_than_the_timeout(start, client):
    release = threading.Event()
    server = start(lambda _server, _connection: release.wait(30))
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"no connection within 0\.3 s"):
        client(server).within(0.3).get(NAMESPACES, "a")
    release.set()
    assert time.monotonic() - began < 4


def test_a_server_that_never_finishes_the_handshake_is_unavailable_but_not_silent(
    start, secured, client, monkeypatch
):
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0.2)
    release = threading.Event()
    server = start(lambda _server, _connection: release.wait(30))
    with pytest.raises(Unavailable, match="no connection within") as caught:
        client(server).get(NAMESPACES, "a")
    release.set()
    assert not isinstance(caught.value, Silence)


def test_a_server_without_tls_is_an_error_that_names_tls(start, client):
    server = start(lambda _server, connection: connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n"))
    with pytest.raises(Unavailable, match="SSLError"):
        client(server).get(NAMESPACES, "a")


@pytest.mark.parametrize("wrong", ["host", "authority"])
def test_a_wrong_certificate_makes_the_client_read_its_configuration_again(
    start, secured, client, wrong
):
    tls = secured("a.example") if wrong == "host" else secured(ca=LocalAuthority.new("another"))
    server = start(endless(OK), tls)
    asked = client(server)
    before = asked._access.transport
    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
        asked.get(NAMESPACES, "a")
    assert server.requests == []
    with pytest.raises(Unavailable):
        asked.get(NAMESPACES, "a")
    assert asked._access.transport is not before


def test_the_name_of_the_server_in_the_kubeconfig_replaces_its_address(start, secured, client):
    tls = secured("api.example")
    seen = []
    tls.sni_callback = lambda _connection, name, _context: seen.append(name)
    server = start(endless(OK), tls)
    assert client(server, name="api.example").get(NAMESPACES, "a") == {}
    assert seen == ["api.example"]
    assert server.requests[0][1]["Host"] == f"127.0.0.1:{server.port}"


def test_a_client_certificate_is_presented(start, secured, client, authority, tmp_path):
    tls = secured()
    (tmp_path / "ca").write_bytes(authority.key_pair.certificate)
    tls.load_verify_locations(tmp_path / "ca")
    tls.verify_mode = ssl.CERT_REQUIRED
    server = start(endless(OK), tls)
    pair = authority.client("somebody", [])
    asked = client(server, pair=(pair.certificate, pair.key))  # it ends its connections with it
    assert asked.get(NAMESPACES, "a") == {}
    subject = dict(field for (field,) in server.connections[0].getpeercert()["subject"])
    assert subject["commonName"] == "somebody"
    assert "Authorization" not in server.requests[0][1]
    with pytest.raises(Unavailable):
        client(server).get(NAMESPACES, "a")


def test_no_redirect_is_followed(start, secured, client):
    moved = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    server = start(endless(moved), secured())
    with pytest.raises(ApiError):
        client(server).get(NAMESPACES, "a")
    assert len(server.requests) == 1


@pytest.mark.parametrize("host", ["", "a" * 64 + ".example", ".example", "no-such-host.invalid"])
def test_a_host_name_that_cannot_be_used_is_an_error_of_the_connection(host):
    sender = HttpTransport(f"https://{host}:1", ssl.create_default_context(), "", 1)
    with pytest.raises(OSError):
        ask(sender)


def stream_of(*pieces):
    def script(server, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.read(connection)
        connection.sendall(CHUNKED)
        for piece in pieces:
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(0.002)
        connection.sendall(b"0\r\n\r\n")
        endless(OK)(server, connection)

    return script


def test_a_watch_yields_lines_although_chunks_end_inside_of_them(start, secured, client):
    pieces = [
        b'{"a"',
        b":1}",
        b'\n{"b":2}\n{"c"',
        b":",
        b"3}\n",
        b"\n",
        b"x" * 100_000,
        b"y\n",
        b"cut",
    ]
    server = start(stream_of(*pieces), secured())
    asked = client(server)
    with asked.stream("/watch", {"watch": "true"}, read_timeout=5) as lines:
        assert list(lines) == [b'{"a":1}', b'{"b":2}', b'{"c":3}', b"x" * 100_000 + b"y"]
    asked.get(NAMESPACES, "a")
    assert len(server.connections) == 1


def test_the_connection_of_a_watch_that_is_left_is_closed(start, secured, client):
    ended = threading.Event()

    def script(server, connection):
        server.read(connection)
        connection.sendall(CHUNKED + b"2\r\na\n\r\n")
        select.select([connection], [], [], 10)
        if not connection.recv(1):
            ended.set()

    server = start(script, secured())
    asked = client(server)
    with asked.stream("/watch", {}, read_timeout=5) as lines:
        assert next(lines) == b"a"
    assert ended.wait(10)
    assert not asked._access.transport._idle


def test_a_watch_ends_when_another_thread_shuts_it_down(start):
    def script(server, connection):
        server.read(connection)
        connection.sendall(CHUNKED + b"2\r\na\n\r\n")
        server.read(connection)

    server = start(script)
    response = plain(server).request("GET", "/", {}, None, 30.0)
    pieces = response.chunks()
    assert next(pieces) == b"a\n"
    threading.Timer(0.1, response.shutdown).start()
    with pytest.raises(ConnectionError, match="before its answer ended"):
        next(pieces)


def test_the_body_of_a_tenants_server_is_bounded(start, secured, client, tmp_path, monkeypatch):
    monkeypatch.setattr("generic.kube.tenants._MAX_BYTES", 2**20)
    sent = []

    def script(server, connection):
        server.read(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 10_000)
            sent.append(10_000)

    server = start(script, secured())
    client(server)
    tenants = connect(read_kubeconfig((tmp_path / "config").read_bytes()))
    with pytest.raises(Unavailable, match="the answer has more than 1 MiB"):
        tenants.get(NAMESPACES, "a")
    assert sum(sent) < 50_000_000


def test_threads_share_the_transport(start, secured, client):
    def script(server, connection):
        while True:
            body = json.dumps({"path": server.read(connection)}).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            connection.sendall(head + body)

    server = start(script, secured())
    asked = client(server, connections=8)
    errors = []

    def work(number):
        try:
            for turn in range(30):
                name = f"{number}-{turn}"
                assert asked.get(NAMESPACES, name)["path"].endswith(f"/{name}")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len({line for line, _, _ in server.requests}) == 240
    assert len(server.connections) <= 8


def tunnel(port):
    """Answer CONNECT, then forward both directions to the port."""

    def script(server, connection):
        server.read(connection)
        with socket.create_connection(("127.0.0.1", port)) as other:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            while True:
                for readable in select.select([connection, other], [], [])[0]:
                    data = readable.recv(65536)
                    (other if readable is connection else connection).sendall(data)
                    if not data:
                        return

    return script


@pytest.fixture
def proxied(client, start, monkeypatch):
    """A client of a TLS server through a proxy, and the proxy."""

    def connected(server, **options):
        proxy = start(tunnel(server.port))
        client(server)  # writes the kubeconfig
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        return client(server, **options), proxy

    return connected


def test_requests_and_watches_go_through_a_proxy(start, secured, proxied):
    server = start(endless(OK), secured())
    asked, proxy = proxied(server, path="/prefix")
    assert asked.get(NAMESPACES, "a") == {}
    asked.create(NAMESPACES, {"metadata": {}})
    line, fields, body = server.requests[-1]
    assert line == "POST /prefix/api/v1/namespaces?fieldManager=actuator HTTP/1.1"
    assert (fields["Authorization"], body) == ("Bearer a-token", b'{"metadata":{}}')
    assert [line.split()[:2] for line, _, _ in proxy.requests] == [
        ["CONNECT", f"127.0.0.1:{server.port}"]
    ]
    assert "Authorization" not in proxy.requests[0][1]
    server.script = stream_of(b'{"a"', b":1}\n{}", b"\ncut")
    other, _ = proxied(server)
    with other.stream("/watch", {}, read_timeout=5) as lines:
        assert list(lines) == [b'{"a":1}', b"{}"]


def test_a_refusal_through_a_proxy_keeps_its_headers(start, secured, proxied):
    busy = b"HTTP/1.1 429 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
    asked, _ = proxied(start(endless(busy), secured()))
    with pytest.raises(ApiError) as caught:
        asked.get(NAMESPACES, "a")
    assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


def test_errors_behind_a_proxy_are_those_of_a_direct_connection(start, secured, proxied):
    def read_only(server, connection):
        server.read(connection)
        time.sleep(1)

    silent = start(read_only, secured())
    asked, _ = proxied(silent)
    with pytest.raises(Silence, match="GET /api/v1/namespaces/a: TimeoutError: "):
        asked.within(0.2).get(NAMESPACES, "a")
    cut = start(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), secured())
    asked, _ = proxied(cut)
    with pytest.raises(Unavailable, match="ConnectionError") as caught:
        asked.get(NAMESPACES, "a")
    assert "object at 0x" not in str(caught.value)
    stranger = start(endless(OK), secured(ca=LocalAuthority.new("another")))
    asked, _ = proxied(stranger)
    before = asked._access.transport
    for _ in range(2):
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            asked.get(NAMESPACES, "a")
    assert asked._access.transport is not before
    assert stranger.requests == []


def test_a_proxy_that_refuses_or_is_not_there_is_unavailable(start, secured, proxied):
    asked, proxy = proxied(start(endless(OK), secured()))
    proxy.script = answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(Unavailable, match="403"):
        asked.get(NAMESPACES, "a")
    proxy.close()
    with pytest.raises(Unavailable, match="refused"):
        asked.get(NAMESPACES, "a")


LOADED = """
import sys
from pathlib import Path
from generic.kube.client import connect
connect(Path(sys.argv[1]))
print("urllib3" in sys.modules)
"""


def test_only_a_configuration_with_a_proxy_imports_urllib3(start, secured, client, tmp_path):
    client(start(endless(OK), secured()))
    command = [sys.executable, "-c", LOADED, str(tmp_path / "config")]

    def loads(**more):
        variables = {**os.environ, **more}
        done = subprocess.run(command, env=variables, capture_output=True, check=True, text=True)
        return done.stdout.strip()

    assert loads() == "False"
    assert loads(https_proxy="http://127.0.0.1:1", no_proxy="") == "True"
