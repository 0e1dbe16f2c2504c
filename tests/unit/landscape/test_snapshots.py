"""The request for an etcd's last snapshot, as gardenlet sends it."""

import http.client
import socket
import ssl

import pytest

from generic.library.programs.errors import EnvtestError
from generic.testing.envtest.certificates import LocalAuthority
from generic.testing.landscape import snapshots
from generic.testing.landscape.snapshots import PORT, SnapshotPort, namespace_of, require_port

SHOOT = "shoot--dev--a"
FINAL = "/snapshot/full?final=true"


@pytest.fixture
def authority():
    return LocalAuthority.new("etcd")


@pytest.fixture
def taken():
    return []


@pytest.fixture
def served(authority, taken):
    def serving(namespace, host):
        return authority.serving([host]) if namespace == SHOOT else None

    with SnapshotPort(serving, taken.append) as port:
        yield port


@pytest.fixture
def ask(served, authority):
    """Returns a function that sends a request, and returns the status."""
    trusted = ssl.create_default_context(cadata=authority.key_pair.certificate.decode())

    def ask(path, host=f"etcd-main-client.{SHOOT}", asked_for=None):
        raw = socket.create_connection((served.address, PORT), timeout=10)
        with trusted.wrap_socket(raw, server_hostname=host) as connected:
            connection = http.client.HTTPConnection(asked_for or host, PORT)
            connection.sock = connected
            connection.request("GET", path)
            return connection.getresponse().status

    return ask


def test_each_request_takes_a_snapshot(ask, taken):
    assert [ask(FINAL), ask(FINAL)] == [200, 200]
    assert taken == [SHOOT, SHOOT]


@pytest.mark.parametrize(
    ("path", "asked_for"), [("/snapshot/full", None), ("/", None), (FINAL, "etcd-main-client./etc")]
)
def test_another_request_takes_no_snapshot(ask, taken, path, asked_for):
    assert ask(path, asked_for=asked_for) == 404
    assert taken == []


@pytest.mark.parametrize("host", ["etcd-main-client.shoot--dev--b", "example.com"])
def test_a_name_of_another_server_gets_no_certificate(ask, host):
    with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
        ask(FINAL, host)


@pytest.mark.parametrize(
    ("host", "namespace"),
    [
        (f"etcd-main-client.{SHOOT}:{PORT}", SHOOT),
        (f"etcd-main-client.{SHOOT}", SHOOT),
        (f"etcd-main-client.{SHOOT}/..", ""),
        ("etcd-main-client./etc", ""),
        ("etcd-main-client.garden", ""),
        (f"etcd-events-client.{SHOOT}", ""),
        ("", ""),
    ],
)
def test_only_the_host_of_a_shoots_etcd_names_a_namespace(host, namespace):
    assert namespace_of(host) == namespace


def test_two_landscapes_have_two_addresses(served):
    with SnapshotPort(lambda _namespace, _host: None, print) as other:
        assert other.address != served.address


def test_a_program_on_all_addresses_is_reported(monkeypatch):
    with socket.create_server(("", 0)) as taken:
        monkeypatch.setattr(snapshots, "PORT", taken.getsockname()[1])
        with pytest.raises(EnvtestError, match=r"port \d+ is in use .* stop that program"):
            require_port()
