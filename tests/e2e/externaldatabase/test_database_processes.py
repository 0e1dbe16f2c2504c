"""The servers of rehearsals: started by any user, ended with their starter."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import extensions
from extensions.externaldatabase.kind import Engine
from extensions.externaldatabase.postgres import connect
from extensions.externaldatabase.servers import MariaDb, Postgres, ServerError, debian, mariadb
from extensions.externaldatabase.servers import postgres as postgres_server
from extensions.externaldatabase.servers.daemon import ServerUser
from tests.support.cluster.harness import eventually

CHECKOUT = Path(extensions.__file__).parent.parent
STARTS_ONE = """
import sys, time
from extensions.externaldatabase.servers import Postgres
server = Postgres()
server.start()
print(server.directory, flush=True)
time.sleep(60)
"""


def started():
    """A process that has started a server, and the server's directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    directory = process.stdout.readline().strip()
    process.stdout.close()
    return process, Path(directory)


def ends(process, directory):
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    eventually(lambda: not directory.exists())


def test_a_server_and_its_data_go_with_a_killed_starter():
    process, directory = started()
    assert (directory / "data").is_dir()
    ends(process, directory)


def test_a_command_runs_as_an_ordinary_user_also_if_root_starts_it():
    for flag in ("-u", "-g", "-G"):
        done = subprocess.run(
            ["/usr/bin/id", flag],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            **ServerUser.ordinary().identity,
        )
        assert "0" not in done.stdout.split()


def test_no_server_runs_as_root(ground):
    assert ground.servers
    for server in ground.servers.values():
        assert (server.directory / "data").stat().st_uid != 0


def test_a_folder_that_the_account_may_not_reach_is_copied(tmp_path):
    closed = tmp_path / "closed"
    (closed / "bin").mkdir(parents=True)
    (closed / "bin" / "tool").write_text("x")
    closed.chmod(0o700)
    other = ServerUser(pwd.getpwnam("nobody"))
    near = tmp_path / "near"
    assert other.reachable(closed, near) == near
    assert (near / "bin" / "tool").read_text() == "x"
    own = ServerUser(None)
    assert own.reachable(closed, near) == closed


@pytest.fixture
def uninstalled(monkeypatch, tmp_path):
    """Neither server is on the machine, and the cache is empty."""
    monkeypatch.setenv("ACTUATOR_CACHE", str(tmp_path))
    monkeypatch.setattr(postgres_server, "_INSTALLED", tmp_path)
    for module in (postgres_server, mariadb):
        monkeypatch.setattr(module, "found", lambda *_: None)


def test_postgres_runs_from_packages_that_are_unpacked_elsewhere(
    monkeypatch, tmp_path, ground, uninstalled
):
    *_, usr = ground.servers[Engine.POSTGRES]._programs.parents[:4]
    for part in ("lib/postgresql", "share/postgresql"):
        shutil.copytree(usr / part, tmp_path / "root" / "usr" / part, symlinks=True)
    monkeypatch.setattr(postgres_server, "unpacked", lambda *_: tmp_path / "root")
    server = Postgres()
    try:
        server.start()
        assert not server._programs.is_relative_to(usr)
        with connect(server.administrator) as connection:
            assert connection.execute("SHOW ssl").fetchone() == ("on",)
            places = "SELECT setting FROM pg_config WHERE name IN ('PKGLIBDIR', 'SHAREDIR')"
            for (place,) in connection.execute(places).fetchall():
                assert Path(place).is_relative_to(server._programs.parents[3])
    finally:
        server.close()


def test_newest_installed_postgres_is_used_and_clients_are_ignored(tmp_path):
    assert postgres_server._newest(tmp_path) is None
    for program in ("9.6/bin/postgres", "15/bin/postgres", "16/bin/psql"):
        path = tmp_path / "lib" / "postgresql" / program
        path.parent.mkdir(parents=True)
        path.touch()
    assert postgres_server._newest(tmp_path) == tmp_path / "lib/postgresql/15/bin/postgres"


@pytest.mark.parametrize(
    ("server", "package"), [(Postgres, "postgresql"), (MariaDb, "mariadb-server-core")]
)
def test_without_server_and_apt_the_error_names_the_package(
    monkeypatch, tmp_path, uninstalled, server, package
):
    monkeypatch.setenv("PATH", str(tmp_path))
    message = f"^{package} cannot be fetched: .*'apt-get'; install it$"
    with pytest.raises(ServerError, match=message), closing(server()) as unavailable:
        unavailable.start()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_a_failure_of_apt_is_reported_and_leaves_no_files(monkeypatch, tmp_path):
    monkeypatch.setenv("ACTUATOR_CACHE", str(tmp_path))
    refusing = tmp_path / "bin" / "apt-get"
    refusing.parent.mkdir()
    refusing.write_text("#!/bin/sh\necho 'E: no network' >&2\nexit 100\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{refusing.parent}:{os.environ['PATH']}")
    with pytest.raises(ServerError, match="status 100: E: no network"):
        debian.unpacked("mariadb-server-core")
    assert not list(tmp_path.glob("mariadb-*.fetching-*"))
