"""The simulated kubelet's port accepts the upgrade of a port-forward, from its API server only."""

import socket
import ssl

import pytest

from generic.testing.envtest.certificates import LocalAuthority
from generic.testing.landscape.kubeletport import KubeletPort


@pytest.fixture
def pki(tmp_path):
    """The authorities of the port, its clients and others; the files have their clients."""
    found = {name: LocalAuthority.new(name) for name in ("kubelet", "api", "other")}
    for name, authority in found.items():
        authority.client("client", []).save(tmp_path / f"{name}.crt", tmp_path / f"{name}.key")
    return found


def opened(pki):
    return KubeletPort(pki["kubelet"].serving(["127.0.0.1"]), pki["api"].key_pair.certificate)


@pytest.fixture
def port(pki):
    with opened(pki) as port:
        yield port


@pytest.fixture
def connect(port, pki, tmp_path):
    """Returns a function that connects with a client's certificate, or with none."""

    def connect(client):
        trusted = pki["kubelet"].key_pair.certificate.decode()
        context = ssl.create_default_context(cadata=trusted)
        if client:
            context.load_cert_chain(tmp_path / f"{client}.crt", tmp_path / f"{client}.key")
        raw = socket.create_connection(("127.0.0.1", port.number), 10)
        return context.wrap_socket(raw, server_hostname="127.0.0.1")

    return connect


def answer(connected, request):
    connected.sendall(request)
    return connected.recv(4096).split(b"\r\n")[0]


def test_an_upgrade_is_accepted_and_stays_open(connect):
    with connect("api") as connected:
        head = b"POST /portForward/kube-system/vpn HTTP/1.1\r\nUpgrade: SPDY/3.1\r\n\r\n"
        assert answer(connected, head) == b"HTTP/1.1 101 Switching Protocols"
        connected.sendall(b"data that nothing reads")
        connected.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connected.recv(1)


def test_any_other_request_is_answered(connect):
    with connect("api") as connected:
        assert answer(connected, b"GET /healthz HTTP/1.1\r\n\r\n") == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("client", [None, "other"])
def test_a_client_without_a_certificate_of_the_api_server_gets_no_answer(connect, client):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        first_line(connect, client)


def first_line(connect, client):
    """With TLS 1.3, a client notices a refused certificate at its first read."""
    with connect(client) as connected:
        if not (found := answer(connected, b"GET / HTTP/1.1\r\n\r\n")):
            raise ConnectionError("closed without an answer")
        return found


def test_after_a_rotation_the_port_answers_clients_of_the_new_authority_alone(port, connect, pki):
    port.renew(pki["kubelet"].serving(["127.0.0.1"]), pki["other"].key_pair.certificate)
    assert first_line(connect, "other") == b"HTTP/1.1 200 OK"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        first_line(connect, "api")


def test_the_port_is_closed_with_its_context(pki):
    with opened(pki) as port:
        number = port.number
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", number), 5)
