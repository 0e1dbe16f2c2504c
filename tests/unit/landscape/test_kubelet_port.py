"""The simulated kubelet's port accepts the upgrade of a port-forward, from its API server only."""

import socket
import ssl

import pytest

from generic.testing.envtest.certificates import LocalAuthority
from generic.testing.landscape.kubeletport import KubeletPort


@pytest.fixture
def pki(tmp_path):
    """Certificates of the port and of a client, and those of another authority."""
    for name in ("kubelet", "api", "other"):
        authority = LocalAuthority.new(name)
        pairs = {"": authority.key_pair, "-c": authority.client("client", [])}
        pairs["-s"] = authority.serving(["127.0.0.1"])
        for kind, pair in pairs.items():
            pair.save(tmp_path / f"{name}{kind}.crt", tmp_path / f"{name}{kind}.key")
    return tmp_path


@pytest.fixture
def port(pki):
    with KubeletPort(pki / "kubelet-s.crt", pki / "kubelet-s.key", pki / "api.crt") as port:
        yield port


def connect(port, pki, client):
    context = ssl.create_default_context(cafile=str(pki / "kubelet.crt"))
    if client:
        context.load_cert_chain(pki / f"{client}-c.crt", pki / f"{client}-c.key")
    raw = socket.create_connection(("127.0.0.1", port.number), 10)
    return context.wrap_socket(raw, server_hostname="127.0.0.1")


def answer(connected, request):
    connected.sendall(request)
    return connected.recv(4096).split(b"\r\n")[0]


def test_an_upgrade_is_accepted_and_stays_open(port, pki):
    with connect(port, pki, "api") as connected:
        head = b"POST /portForward/kube-system/vpn HTTP/1.1\r\nUpgrade: SPDY/3.1\r\n\r\n"
        assert answer(connected, head) == b"HTTP/1.1 101 Switching Protocols"
        connected.sendall(b"data that nothing reads")
        connected.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connected.recv(1)


def test_any_other_request_is_answered(port, pki):
    with connect(port, pki, "api") as connected:
        assert answer(connected, b"GET /healthz HTTP/1.1\r\n\r\n") == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("client", [None, "other"])
def test_a_client_without_a_certificate_of_the_api_server_gets_no_answer(port, pki, client):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        first_line(port, pki, client)


def first_line(port, pki, client):
    """With TLS 1.3, a client notices a refused certificate at its first read."""
    with connect(port, pki, client) as connected:
        if not (found := answer(connected, b"GET / HTTP/1.1\r\n\r\n")):
            raise ConnectionError("closed without an answer")
        return found


def test_after_a_rotation_the_port_answers_clients_of_the_new_authority_alone(port, pki):
    port.renew(pki / "kubelet-s.crt", pki / "kubelet-s.key", pki / "other.crt")
    assert first_line(port, pki, "other") == b"HTTP/1.1 200 OK"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        first_line(port, pki, "api")


def test_the_port_is_closed_with_its_context(pki):
    with KubeletPort(pki / "kubelet-s.crt", pki / "kubelet-s.key", pki / "api.crt") as port:
        number = port.number
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", number), 5)
