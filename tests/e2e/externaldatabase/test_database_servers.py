"""The extension on a real server, without any Kubernetes."""

import time
from itertools import count

import attrs
import psycopg
import pymysql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actuator import ConfigurationError, ErrorCode
from extensions.externaldatabase.kind import Engine
from extensions.externaldatabase.server import Claim, ClaimState, RequestRefused, Traffic
from tests.support.samples.databases import (
    NOTHING,
    connected,
    enter,
    free,
    names_on,
    on_every_server,
    provision,
    quoted,
    run,
)

HOSTILE = st.text(
    st.sampled_from("\"'`\\;-/*%_$?{}() \0\n\tabAB1é😀") | st.characters(), min_size=1, max_size=70
)
numbers = count(1)


@on_every_server
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(name=HOSTILE)
def test_a_hostile_name_is_one_database_of_that_name_or_an_error(server, ground, engine, name):
    there = ground.administrator(engine)
    claim = Claim(database=name, login=f"{next(numbers):032x}", owner="shop/hostile")
    before = names_on(engine, there)
    try:
        provision(server, claim)
        made = {name}
    except (ConfigurationError, RequestRefused):
        made = set()
    assert names_on(engine, there) - before <= made
    assert before <= names_on(engine, there)
    try:
        server.remove(claim, free)
    except (ConfigurationError, RequestRefused):
        server.remove(attrs.evolve(claim, database="never-made"), free)
    assert names_on(engine, there) == before
    assert not server.look(attrs.evolve(claim, database="never-made")).has_login


@on_every_server
def test_provisioning_and_removal_are_idempotent_and_the_mark_names_the_owner(server, claim):
    assert server.look(claim) == NOTHING
    provision(server, claim)
    provision(server, claim)
    assert server.look(claim) == ClaimState(holder=claim.login, has_login=True)
    mine = {(what, holding) for what, holding in server.holdings() if holding.login == claim.login}
    assert mine == {("Database", claim), ("Login", claim)}
    for _ in range(2):
        server.remove(claim, free)
        assert server.look(claim) == NOTHING


@on_every_server
def test_a_database_in_use_is_dropped_even_so(server, ground, engine, claim):
    provision(server, claim)
    there = attrs.evolve(ground.administrator(engine), user=claim.login, password="secret")
    with connected(engine, there, claim.database):
        server.remove(claim, free)
    assert server.look(claim) == NOTHING


@on_every_server
def test_a_login_enters_its_own_database_and_no_other(server, ground, engine, claim):
    tail = claim.login[:10]
    mine = attrs.evolve(claim, database=f"a_b{tail}")
    theirs = Claim(database=f"axb{tail}", login=claim.login[::-1], owner="shop/theirs")
    for item in (mine, theirs):
        provision(server, item)
        assert enter(ground, engine, item, item.database) == [(1,)]
    with pytest.raises((psycopg.OperationalError, pymysql.err.OperationalError)):
        enter(ground, engine, mine, theirs.database)
    for element in (mine, theirs):
        server.remove(element, free)


@on_every_server
def test_a_new_password_is_the_only_one(server, ground, engine, claim):
    provision(server, claim, "first")
    provision(server, claim, "se'co\"nd%s\\")
    assert enter(ground, engine, claim, claim.database, "se'co\"nd%s\\") == [(1,)]
    with pytest.raises((psycopg.OperationalError, pymysql.err.OperationalError)):
        enter(ground, engine, claim, claim.database, "first")
    server.remove(claim, free)


@on_every_server
def test_a_database_of_another_owner_is_not_removed(server, ground, engine, claim):
    provision(server, claim)
    another = attrs.evolve(claim, login=claim.login[::-1])
    server.remove(another, free)
    assert server.look(claim) == ClaimState(holder=claim.login, has_login=True)
    name = quoted(engine, f"un{claim.database}")
    run(engine, ground.administrator(engine), f"CREATE DATABASE {name}")
    unmarked = attrs.evolve(another, database=f"un{claim.database}")
    assert server.look(unmarked).holder not in (None, claim.login)
    server.remove(unmarked, free)
    assert server.look(unmarked).holder is not None
    run(engine, ground.administrator(engine), f"DROP DATABASE {name}")
    server.remove(claim, free)


@on_every_server
def test_nothing_is_done_any_more_once_a_call_must_stop(server, claim):
    def stop():
        raise TimeoutError

    with pytest.raises(TimeoutError):
        server.provision(claim, "secret", NOTHING, stop)
    assert server.look(claim) == NOTHING
    provision(server, claim)
    with pytest.raises(TimeoutError):
        server.remove(claim, stop)
    assert server.look(claim) == ClaimState(holder=claim.login, has_login=True)
    server.remove(claim, free)


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        ("everything-fails", ErrorCode.ERR_INFRA_UNAUTHENTICATED),
        ("credentials-revoked", ErrorCode.ERR_INFRA_UNAUTHENTICATED),
        ("deletion-denied", ErrorCode.ERR_INFRA_UNAUTHORIZED),
    ],
)
def test_each_refusal_of_a_server_has_its_code(server, ground, engine, claim, trouble, code):
    provision(server, claim)
    ground.inject_failure(trouble)
    with pytest.raises(RequestRefused) as refused:
        server.remove(claim, free)
    assert refused.value.codes == (code,)
    assert "secret" not in str(refused.value)
    ground.repair_failure()
    server.remove(claim, free)


@pytest.mark.parametrize("place", ["a schema", "a database", "the server"])
def test_a_login_that_others_depend_on_keeps_its_database(servers, ground, claim, place):
    """PostgreSQL drops no role that has objects or privileges elsewhere."""
    engine = Engine.POSTGRES
    other = quoted(Engine.POSTGRES, f"other-{claim.database}")
    server = servers[engine]
    admin = ground.administrator(engine)
    login = quoted(engine, claim.login)
    provision(server, claim)
    run(engine, admin, f"CREATE DATABASE {other}")
    privileges = {
        "a schema": "CREATE ON SCHEMA public",
        "a database": f"CONNECT ON DATABASE {other}",
        "the server": "SET ON PARAMETER work_mem",
    }
    where = f"other-{claim.database}" if place == "a schema" else "postgres"
    run(engine, admin, f"GRANT {privileges[place]} TO {login}", where)
    with pytest.raises(
        RequestRefused, match=f"{claim.login} has privileges or objects in"
    ) as refused:
        server.remove(claim, free)
    assert refused.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    assert server.look(claim) == ClaimState(holder=claim.login, has_login=True)
    run(engine, admin, f"REVOKE {privileges[place]} FROM {login}", where)
    server.remove(claim, free)
    run(engine, admin, f"DROP DATABASE {other}")


def test_a_server_that_is_down_is_a_dependency_and_forgets_nothing(server, ground, engine, claim):
    provision(server, claim)
    process = ground.servers[engine]
    process.pause()
    try:
        with pytest.raises(RequestRefused) as refused:
            server.look(claim)
    finally:
        process.resume()
    assert refused.value.codes == (ErrorCode.ERR_INFRA_DEPENDENCIES,)
    assert server.look(claim) == ClaimState(holder=claim.login, has_login=True)
    server.remove(claim, free)


def test_requests_are_spread_once_a_seconds_worth_is_used_up():
    traffic = Traffic(100)
    began = time.monotonic()
    for _ in range(130):
        with traffic.request("look"):
            pass
    assert time.monotonic() - began >= 0.25
