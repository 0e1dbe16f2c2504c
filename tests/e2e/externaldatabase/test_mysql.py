"""MySQL 8: its marks, its authentication, and a database from an object to its deletion.

The server is a simulator (mysql_simulator); tests/unit/externaldatabase has the statements.
"""

from __future__ import annotations

import attrs
import pymysql
import pytest

from actuator import ErrorCode
from extensions.externaldatabase import server_for
from extensions.externaldatabase.kind import Engine
from extensions.externaldatabase.server import Claim, RequestRefused, Traffic
from tests.support.cluster.harness import eventually
from tests.support.samples.databases import NOTHING, enter, free, provision, run


@pytest.fixture
def session_ground(mysql_ground):
    return mysql_ground


@pytest.fixture
def engine():
    return Engine.MYSQL


class Killed(Exception):
    """The process was killed."""


def killed_before(step):
    """A check that raises before this step."""
    steps = iter(range(step))

    def check():
        if next(steps, None) is None:
            raise Killed

    return check


@pytest.mark.parametrize("steps", range(4))
def test_a_provisioning_that_was_killed_at_any_step_is_completed(server, ground, claim, steps):
    with pytest.raises(Killed):
        server.provision(claim, "secret", server.look(claim), killed_before(steps))
    found = server.look(claim)
    assert (found.holder, found.has_login) == (claim.login if steps > 1 else None, steps > 0)
    assert found.marked is (steps != 2), "only between CREATE DATABASE and its mark"
    provision(server, claim)
    assert enter(ground, Engine.MYSQL, claim, claim.database) == [(1,)]
    server.remove(claim, free)
    assert server.look(claim) == NOTHING


@pytest.mark.parametrize("steps", range(4))
def test_a_provisioning_that_was_killed_at_any_step_leaves_nothing_when_removed(
    server, claim, steps
):
    with pytest.raises(Killed):
        server.provision(claim, "secret", server.look(claim), killed_before(steps))
    server.remove(claim, free)
    assert server.look(claim) == NOTHING


def test_a_removal_that_was_killed_is_completed(server, claim):
    provision(server, claim)
    with pytest.raises(Killed):
        server.remove(claim, killed_before(1))
    assert server.look(claim) == attrs.evolve(NOTHING, has_login=True)
    server.remove(claim, free)
    assert server.look(claim) == NOTHING


@pytest.mark.parametrize("content", ["TABLE {}.t (n integer)", "PROCEDURE {}.p() BEGIN END"])
def test_an_unmarked_database_with_content_belongs_to_others(server, ground, claim, content):
    with pytest.raises(Killed):
        server.provision(claim, "secret", server.look(claim), killed_before(2))
    name = f"`{claim.database}`"
    ground.execute(f"CREATE {content.format(name)}")
    assert server.look(claim).holder == ""
    server.remove(claim, free)
    assert server.look(claim) == attrs.evolve(NOTHING, holder="")
    ground.execute(f"DROP DATABASE {name}")


def test_a_database_that_others_create_meanwhile_is_not_taken(server, ground, claim):
    found = server.look(claim)
    name = f"`{claim.database}`"

    def create_it_first():
        ground.execute(f"CREATE DATABASE IF NOT EXISTS {name}")

    with pytest.raises(RequestRefused, match="did not create a database"):
        server.provision(claim, "secret", found, create_it_first)
    assert server.look(claim) == attrs.evolve(NOTHING, holder=""), "no login that could claim it"
    ground.execute(f"DROP DATABASE {name}")


def test_of_two_objects_with_one_name_only_the_first_gets_in(server, ground, claim):
    another = attrs.evolve(claim, login=claim.login[::-1], owner="shop/another")
    for item in (another, claim):
        with pytest.raises(Killed):  # both find a database that either could have created
            server.provision(item, "secret", NOTHING, killed_before(1 if item is another else 2))
    found = server.look(another)
    provision(server, claim)
    with pytest.raises(RequestRefused, match="did not mark a database"):
        server.provision(another, "secret", found, free)
    assert server.look(another).holder == claim.login
    with pytest.raises(pymysql.err.Error):
        enter(ground, Engine.MYSQL, another, claim.database)
    for element in (another, claim):
        server.remove(element, free)


def test_a_database_that_another_object_marks_meanwhile_is_not_dropped(server, claim):
    """Two objects have one name; one is deleted after a crash between creation and mark."""
    another = attrs.evolve(claim, login=claim.login[::-1], owner="shop/another")
    for item, steps in ((another, 1), (claim, 2)):
        with pytest.raises(Killed):
            server.provision(item, "secret", NOTHING, killed_before(steps))

    def mark_it_first():
        if not server.look(claim).marked:
            provision(server, claim)

    with pytest.raises(RequestRefused, match="did not mark a database"):
        server.remove(another, mark_it_first)
    server.remove(another, free)
    assert server.look(another) == attrs.evolve(NOTHING, holder=claim.login)
    assert server.look(claim).has_login
    server.remove(claim, free)


def test_the_accounts_use_caching_sha2_password(server, ground, claim):
    provision(server, claim)
    query = f"SELECT plugin FROM mysql.user WHERE User IN ('extension', '{claim.login}')"
    rows = run(Engine.MYSQL, ground.administrator(Engine.MYSQL), query)
    assert rows == [("caching_sha2_password",)] * 2
    server.remove(claim, free)


def test_a_changed_password_has_its_code_and_is_not_repeated(server, ground, claim):
    ground.inject_failure("credentials-revoked")
    with pytest.raises(RequestRefused) as refused:
        server.look(claim)
    assert refused.value.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)
    assert "given" not in str(refused.value)


def test_without_tls_the_account_is_not_used(ground):
    url = ground.endpoint(Engine.MYSQL).url("mysql") + "?sslmode=disable"
    claim = Claim(database="orders", login="0" * 32, owner="shop/orders")
    with pytest.raises(RequestRefused) as refused:
        server_for(Engine.MYSQL, url, Traffic(500)).look(claim)
    assert "given" not in str(refused.value)


def test_deletion_drops_database_and_login(databases, serve, login):
    serve()
    name = databases.provision(Engine.MYSQL)
    user = login()
    run(Engine.MYSQL, databases.door(), "CREATE TABLE t (n integer)", name)
    databases.delete()
    eventually(databases.is_gone)
    assert not databases.has(Engine.MYSQL, name)
    assert not databases.has_login(Engine.MYSQL, user)
