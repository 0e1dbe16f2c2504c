"""MySQL 8: its marks, its authentication, and a database from an object to its deletion.

The server is a simulator (mysql_simulator); tests/unit/externaldatabase has the statements.
"""

from __future__ import annotations

import attrs
import pymysql
import pytest
from database_objects import run
from harness import eventually
from mysql_simulator import MySqlSimulator

# Tests of every server, here with the fixtures of this module.
from test_database_servers import (  # noqa: F401
    NOTHING,
    enter,
    free,
    provision,
    test_a_database_in_use_is_dropped_even_so,
    test_a_hostile_name_is_one_database_of_that_name_or_an_error,
    test_a_login_enters_its_own_database_and_no_other,
    test_a_new_password_is_the_only_one,
    test_nothing_is_done_any_more_once_a_call_must_stop,
    test_what_is_anothers_is_not_removed,
    test_what_is_done_twice_is_done_once_and_the_mark_says_whose_it_is,
)
from test_database_tls import (  # noqa: F401
    ca,
    test_a_certificate_for_another_host_is_refused,
    test_the_certificate_of_another_authority_is_refused_and_the_right_one_works,
)
from test_databases import (  # noqa: F401
    test_a_database_is_provisioned_and_its_secret_leads_into_it,
    test_a_database_without_our_mark_is_neither_taken_nor_dropped,
    test_a_login_that_is_gone_comes_back_and_that_is_said,
    test_a_lost_database_is_said_to_be_lost_and_not_made_again,
    test_no_password_is_in_status_events_or_logs,
    test_what_a_crash_left_without_a_dbid_is_found_again_with_its_data,
)

from actuator import ErrorCode
from extensions.externaldatabase import server_for
from extensions.externaldatabase.endpoint import Endpoint
from extensions.externaldatabase.kind import Engine
from extensions.externaldatabase.server import Claim, Refused, Traffic

ACCOUNT = "extension@'%'"


class MySqlGround:
    """As DatabaseRehearsal, with the simulator for each engine."""

    def __init__(self) -> None:
        self.simulator = MySqlSimulator()

    def start(self) -> None:
        self.simulator.start()
        self.execute(f"CREATE USER {ACCOUNT} IDENTIFIED WITH caching_sha2_password BY 'given'")
        self.mend_outside()

    def administrator(self, _engine: Engine) -> Endpoint:
        return self.simulator.administrator

    def endpoint(self, engine: Engine) -> Endpoint:
        return attrs.evolve(self.administrator(engine), user="extension", password="given")

    def execute(self, statement: str) -> None:
        run(Engine.MYSQL, self.simulator.administrator, statement)

    def set_password(self, password: str) -> None:
        self.execute(f"ALTER USER {ACCOUNT} IDENTIFIED WITH caching_sha2_password BY '{password}'")

    def break_outside(self, scenario: str) -> None:
        if scenario == "deletion-denied":
            self.execute(f"REVOKE DROP, DELETE, CREATE USER, SUPER ON *.* FROM {ACCOUNT}")
        else:
            self.set_password("another")

    def mend_outside(self) -> None:
        self.set_password("given")
        self.execute(f"GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT} WITH GRANT OPTION")


@pytest.fixture(scope="module")
def session_ground():
    ground = MySqlGround()
    try:
        ground.start()
        yield ground
    finally:
        ground.simulator.close()


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
    found, name = server.look(claim), f"`{claim.database}`"

    def create_it_first():
        ground.execute(f"CREATE DATABASE IF NOT EXISTS {name}")

    with pytest.raises(Refused, match="did not create a database"):
        server.provision(claim, "secret", found, create_it_first)
    assert server.look(claim) == attrs.evolve(NOTHING, holder=""), "no login that could claim it"
    ground.execute(f"DROP DATABASE {name}")


def test_of_two_objects_with_one_name_only_the_first_gets_in(server, ground, claim):
    another = attrs.evolve(claim, login=claim.login[::-1], owner="shop/another")
    for one in (another, claim):
        with pytest.raises(Killed):  # both find a database that either could have created
            server.provision(one, "secret", NOTHING, killed_before(1 if one is another else 2))
    found = server.look(another)
    provision(server, claim)
    with pytest.raises(Refused, match="did not mark a database"):
        server.provision(another, "secret", found, free)
    assert server.look(another).holder == claim.login
    with pytest.raises(pymysql.err.Error):
        enter(ground, Engine.MYSQL, another, claim.database)
    for one in (another, claim):
        server.remove(one, free)


def test_a_database_that_another_object_marks_meanwhile_is_not_dropped(server, claim):
    """Two objects have one name; one is deleted after a crash between creation and mark."""
    another = attrs.evolve(claim, login=claim.login[::-1], owner="shop/another")
    for one, steps in ((another, 1), (claim, 2)):
        with pytest.raises(Killed):
            server.provision(one, "secret", NOTHING, killed_before(steps))

    def mark_it_first():
        if not server.look(claim).marked:
            provision(server, claim)

    with pytest.raises(Refused, match="did not mark a database"):
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
    ground.break_outside("credentials-revoked")
    with pytest.raises(Refused) as refused:
        server.look(claim)
    assert refused.value.codes == (ErrorCode.ERR_INFRA_UNAUTHENTICATED,)
    assert "given" not in str(refused.value)


def test_without_tls_the_account_is_not_used(ground):
    url = ground.endpoint(Engine.MYSQL).url("mysql") + "?sslmode=disable"
    claim = Claim(database="orders", login="0" * 32, owner="shop/orders")
    with pytest.raises(Refused) as refused:
        server_for(Engine.MYSQL, url, Traffic(500)).look(claim)
    assert "given" not in str(refused.value)


def test_deletion_drops_database_and_login(databases, serve, login):
    serve()
    name, user = databases.provision(Engine.MYSQL), login()
    run(Engine.MYSQL, databases.door(), "CREATE TABLE t (n integer)", name)
    databases.delete()
    eventually(databases.is_gone)
    assert not databases.has(Engine.MYSQL, name)
    assert not databases.has_login(Engine.MYSQL, user)
