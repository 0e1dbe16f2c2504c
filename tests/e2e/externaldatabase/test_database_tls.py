"""The admin password leaves only to a server whose certificate was verified, and never as text."""

import secrets
import socket
import ssl
import struct
import threading
from base64 import b64encode
from contextlib import ExitStack, contextmanager, suppress

import attrs
import pytest

from actuator import ConfigurationError, ErrorCode
from extensions.externaldatabase import extension, server_for
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.kind import Engine
from extensions.externaldatabase.server import RequestRefused, Traffic
from generic import Manager
from generic.manager.options import Options
from generic.testing.envtest.certificates import LocalAuthority
from tests.support.samples.databases import on_every_server

CLIENT_SSL = 1 << 11
PLUGIN_AUTH = 1 << 19
BASE = 1 | 1 << 9 | 1 << 15 | PLUGIN_AUTH
"""LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION: every MariaDB server announces them."""
SENDING_PLUGINS = ["mysql_clear_password", "dialog", "sha256_password", "caching_sha2_password"]


class Recorder:
    """A server that records every byte it gets; it asks for the password by a plugin of MariaDB's.

    With a context it offers TLS, otherwise it answers as a server without TLS does.
    """

    def __init__(self, engine, plugin="mysql_clear_password", context=None, switch=True):
        self.engine = engine
        self.plugin = plugin
        self.context = context
        self.switch = switch
        self.received = b""
        self.connected = False
        self.asked = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connected = True
            connection.settimeout(2)
            with ExitStack() as self.open, suppress(OSError, IndexError):
                self.open.enter_context(connection)
                answer = self.postgres if self.engine is Engine.POSTGRES else self.mariadb
                answer(connection)

    def secure(self, connection):
        secured = self.context.wrap_socket(connection, server_side=True)
        return self.open.enter_context(secured)

    def read(self, connection, size=65536):
        some = connection.recv(size)
        self.received += some
        return some

    def drain(self, connection):
        while self.read(connection):
            pass

    def postgres(self, connection):
        while True:
            some = self.read(connection)
            if not some:
                return
            code = struct.unpack("!I", some[4:8])[0]
            if code == 80877103 and self.context:
                connection.sendall(b"S")
                connection = self.secure(connection)
            elif code in (80877103, 80877104):
                connection.sendall(b"N")
            else:
                break
        self.asked = True
        connection.sendall(b"R" + struct.pack("!II", 8, 3))  # AuthenticationCleartextPassword
        self.drain(connection)

    def mariadb(self, connection):
        capabilities = BASE | (CLIENT_SSL if self.context else 0)
        plugin = "mysql_native_password" if self.switch else self.plugin
        greeting = b"\x0a5.5.5-10.11.6-MariaDB\0" + struct.pack("<I", 7) + b"saltsalt\0"
        greeting += struct.pack("<HBHH", capabilities & 0xFFFF, 45, 2, capabilities >> 16)
        greeting += bytes([21]) + bytes(10) + b"moresaltsalt\0" + plugin.encode() + b"\0"
        connection.sendall(packet(0, greeting))
        if self.context:
            self.read(connection, 36)  # the request for TLS; the handshake follows at once
            connection = self.secure(connection)
        sequence = self.read(connection)[3]
        self.asked = True
        asks = b"\xfe" + self.plugin.encode() + b"\0Password: " if self.switch else b"\x01\x04"
        connection.sendall(packet(sequence + 1, asks))
        self.drain(connection)


def packet(sequence, payload):
    return struct.pack("<I", len(payload))[:3] + bytes([sequence & 0xFF]) + payload


@contextmanager
def recording(engine, **how):
    recorder = Recorder(engine, **how)
    thread = threading.Thread(target=recorder.serve, daemon=True)
    thread.start()
    try:
        yield recorder
    finally:
        recorder.listener.shutdown(socket.SHUT_RDWR)
        recorder.listener.close()
        thread.join(10)


@pytest.fixture(scope="module")
def authority():
    return LocalAuthority.new("databases")


@pytest.fixture
def context(authority, tmp_path):
    """The TLS context of a server with a certificate of the authority."""
    authority.serving(["127.0.0.1"]).save(tmp_path / "crt", tmp_path / "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    return context


def ca(authority):
    return authority.key_pair.certificate.decode()


def refusal(engine, recorder, claim, query="", trusted=""):
    """The report of the extension about this server; the password must not have arrived."""
    password = secrets.token_hex(16)
    url = f"server://admin:{password}@127.0.0.1:{recorder.port}{query}"
    with pytest.raises(RequestRefused) as refused:
        server_for(engine, url, Traffic(500), trusted).look(claim)
    assert recorder.connected
    for shape in (password.encode(), b64encode(password.encode())):
        assert shape not in recorder.received
    assert password not in str(refused.value)
    return refused.value


def test_a_server_without_tls_gets_no_login(engine, claim):
    with recording(engine) as recorder:
        error = refusal(engine, recorder, claim)
    assert not recorder.asked
    assert b"admin" not in recorder.received
    assert "ca.crt of the admin Secret" in str(error)
    assert f"127.0.0.1:{recorder.port}" in str(error)
    assert error.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


def test_a_server_with_an_unknown_certificate_gets_no_login(engine, claim, context):
    with recording(engine, context=context) as recorder:
        error = refusal(engine, recorder, claim, trusted=ca(LocalAuthority.new("another")))
    assert not recorder.asked
    assert "certificate" in str(error)
    assert "ca.crt of the admin Secret" in str(error)


def test_a_verified_server_that_asks_for_clear_text_gets_no_password(
    engine, claim, context, authority
):
    with recording(engine, context=context) as recorder:
        error = refusal(engine, recorder, claim, trusted=ca(authority))
    assert recorder.asked
    assert "clear-text" in str(error)
    assert error.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


def test_a_loopback_server_without_tls_that_asks_for_clear_text_gets_no_password(engine, claim):
    with recording(engine) as recorder:
        refusal(engine, recorder, claim, "?sslmode=disable")
    assert recorder.asked


@pytest.mark.parametrize("switch", [True, False], ids=["switch", "greeting"])
@pytest.mark.parametrize("plugin", SENDING_PLUGINS)
def test_no_plugin_of_mariadb_that_sends_the_password_is_used(claim, plugin, switch):
    with recording(Engine.MYSQL, plugin=plugin, switch=switch) as recorder:
        error = refusal(Engine.MYSQL, recorder, claim, "?sslmode=disable")
    assert recorder.asked
    assert "clear text" in str(error)
    assert len(recorder.received) < 600, "no key exchange either"


@on_every_server
def test_the_certificate_of_another_authority_is_refused_and_the_right_one_works(
    ground, engine, claim
):
    there = ground.endpoint(engine)
    assert server_for(engine, there.url("server"), Traffic(500), there.ca).holdings() is not None
    wrong = server_for(engine, there.url("server"), Traffic(500), ca(LocalAuthority.new("another")))
    with pytest.raises(
        RequestRefused, match=r"certificate.* set the key ca\.crt of the admin Secret"
    ):
        wrong.look(claim)
    system = server_for(engine, there.url("server"), Traffic(500))
    with pytest.raises(
        RequestRefused, match=r"certificate.* set the key ca\.crt of the admin Secret"
    ):
        system.look(claim)


@on_every_server
def test_a_certificate_for_another_host_is_refused(ground, engine, claim):
    there = attrs.evolve(ground.endpoint(engine), host="localhost")
    server = server_for(engine, there.url("server"), Traffic(500), there.ca)
    with pytest.raises(RequestRefused, match="certificate"):
        server.look(claim)


def test_an_object_names_the_server_and_the_remedy_when_its_ca_is_wrong(
    databases, serve, servers, engine
):
    server = servers[engine]
    server.endpoint = attrs.evolve(server.endpoint, ca=ca(LocalAuthority.new("another")))
    serve()
    databases.ask_for(engine)
    said = databases.wait_for("False", "ProvisionFailed")
    assert said["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert f"127.0.0.1:{server.endpoint.port}" in said["message"]
    assert "set the key ca.crt of the admin Secret to its CA" in said["message"]


def test_a_long_text_of_a_server_is_cut_and_the_remedy_is_kept():
    error = RequestRefused(
        "MariaDB at h:1", "look", "certificate " + "x" * 100_000, ErrorCode.ERR_INFRA_DEPENDENCIES
    )
    assert len(str(error)) < 1000
    assert "ca.crt of the admin Secret" in str(error)


@pytest.mark.parametrize(
    "tail",
    [
        "10.0.0.1?sslmode=disable",
        "db.example.org?sslmode=disable",
        "127.0.0.1?sslmode=prefer",
        "127.0.0.1?sslmode=verify-full&sslrootcert=/x",
        "127.0.0.1?sslrootcert=/x",
        "127.0.0.1/postgres",
        "127.0.0.1#x",
    ],
)
def test_an_option_that_is_not_honoured_is_refused_and_not_repeated(tail):
    with pytest.raises(ConfigurationError, match="sslmode=verify-full") as refused:
        DatabaseEndpoint.parse(f"postgresql://u:hunter2@{tail}", 5432)
    assert "hunter2" not in str(refused.value)
    assert "example" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_tls_can_be_disabled_for_a_loopback_server_only_by_name(host):
    assert DatabaseEndpoint.parse(f"s://u:p@{host}", 1).tls
    assert DatabaseEndpoint.parse(f"s://u:p@{host}?sslmode=verify-full", 1).tls
    assert not DatabaseEndpoint.parse(f"s://u:p@{host}?sslmode=disable", 1).tls


def test_a_ca_that_is_no_certificate_is_refused_at_start(monkeypatch):
    monkeypatch.setenv("DATABASES_POSTGRES_URL", "postgresql://u:hunter2@h")
    monkeypatch.setenv("DATABASES_POSTGRES_CA", "hunter2")
    with pytest.raises(ConfigurationError, match=r"DATABASES_POSTGRES_CA: .*ca\.crt") as refused:
        extension(Manager(Options()))
    assert "hunter2" not in str(refused.value)
