"""ExternalDatabases on real servers: created once, never lost unseen, never of another owner."""

import secrets
import string

import psycopg
import pymysql
import pytest

from actuator.cluster import FORCE_DELETION
from actuator.errors import Invalid, NotFound
from actuator.interface import ExternalResource
from extensions.externaldatabase.connection import SECRETS
from extensions.externaldatabase.kind import Engine
from tests.support.cluster.harness import EVENTS, eventually
from tests.support.samples.databases import GROUNDS, on_every_server, quoted, run


@on_every_server
def test_a_database_is_provisioned_and_its_secret_leads_into_it(databases, serve, engine):
    serve()
    name = databases.provision(engine)
    assert databases.status()["dbid"] == f"{engine}/{name}"
    assert databases.connection()["database"] == name
    run(engine, databases.door(), "CREATE TABLE t (n integer)", name)
    run(engine, databases.door(), "INSERT INTO t VALUES (7)", name)
    assert run(engine, databases.door(), "SELECT n FROM t", name) == [(7,)]
    secret = databases.client.get(SECRETS, "orders-connection", databases.namespace)
    (owner,) = secret["metadata"]["ownerReferences"]
    assert owner["uid"] == databases.get()["metadata"]["uid"]
    assert owner["controller"] is True


def test_the_api_server_keeps_name_and_engine_and_fills_in_the_policy(databases):
    databases.ask_for(Engine.MYSQL)
    assert databases.get()["spec"]["deletionPolicy"] == "Delete"
    for field, value in (("name", "another"), ("engine", "postgres")):
        with pytest.raises(Invalid, match="field is immutable"):
            databases.patch({"spec": {field: value}})
    databases.delete()
    databases.name = "short"
    for spec in ({"name": "ab"}, {"engine": "oracle"}, {"deletionPolicy": "Maybe"}):
        with pytest.raises(Invalid):
            databases.ask_for(Engine.MYSQL, **spec)


def test_deletion_drops_database_and_login_and_the_secret_is_collected(
    databases, serve, engine, login
):
    serve()
    name = databases.provision(engine)
    user = login()
    with_data = databases.door()
    run(engine, with_data, "CREATE TABLE t (n integer)", name)
    databases.delete()
    eventually(databases.is_gone)
    assert not databases.has(engine, name)
    assert not databases.has_login(engine, user)

    def collected():
        try:
            databases.connection()
        except NotFound:
            return True
        return False

    eventually(collected, 180)  # the collector looks for new kinds every half a minute
    assert databases.orphans() == {}


@on_every_server
def test_a_database_whose_dbid_a_crash_lost_is_found_again_with_its_data(databases, serve, engine):
    serve()
    name = databases.provision(engine)
    run(engine, databases.door(), "CREATE TABLE t (n integer)", name)
    databases.patch({"status": {"dbid": ""}}, subresource="status")
    databases.look_again()
    eventually(lambda: databases.status().get("dbid") == f"{engine}/{name}")
    assert run(engine, databases.door(), "SELECT n FROM t", name) == []


@on_every_server
def test_a_lost_database_is_reported_and_not_created_again(databases, serve, engine):
    serve()
    name = databases.provision(engine)
    databases.as_administrator(engine, f"DROP DATABASE {quoted(engine, name)}")
    databases.look_again()
    said = databases.wait_for("False", "Lost")
    assert "restore it" in said["message"]
    assert not databases.has(engine, name)
    assert databases.status()["dbid"] == f"{engine}/{name}"
    databases.delete()
    eventually(databases.is_gone)


@on_every_server
def test_a_database_without_our_mark_is_neither_taken_nor_dropped(databases, serve, engine):
    serve()
    name = f"foreign-{secrets.token_hex(5)}"
    databases.as_administrator(engine, f"CREATE DATABASE {quoted(engine, name)}")
    databases.ask_for(engine, name)
    said = databases.wait_for("False", "ProvisionFailed")
    assert said["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert "has another owner" in said["message"]
    assert not databases.status().get("dbid")
    databases.delete()
    eventually(databases.is_gone)
    assert databases.has(engine, name)
    databases.as_administrator(engine, f"DROP DATABASE {quoted(engine, name)}")


@pytest.mark.parametrize(
    "name",
    ['x"; DROP DATABASE canary; --', "x`; DROP DATABASE canary; -- ", "x\\' OR 1=1", "ü" * 9],
)
def test_an_object_with_a_hostile_name_has_an_error_and_can_be_deleted(
    databases, serve, engine, name
):
    serve()
    databases.ask_for(engine, name)
    said = databases.wait_for("False", "ProvisionFailed")
    assert said["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert "spec.name" in said["message"]
    databases.delete()
    eventually(databases.is_gone)
    assert databases.orphans() == {}


def test_retain_leaves_all_of_it_as_an_outcome_and_no_orphan(databases, serve, engine, login):
    manager = serve()
    name = databases.provision(engine, deletionPolicy="Retain")
    user = login()
    databases.delete()
    eventually(databases.is_gone)
    assert databases.has(engine, name)
    assert databases.has_login(engine, user)
    (event,) = eventually(lambda: databases.events("Retained"))
    assert f"{engine}/{name}" in event["message"]
    assert "Secret orders-connection remains" in event["message"]
    secret = databases.client.get(SECRETS, "orders-connection", databases.namespace)
    assert not secret["metadata"].get("ownerReferences")
    run(engine, databases.door(), "CREATE TABLE t (n integer)", name)
    assert databases.orphans() == {}
    eventually(lambda: outcomes(manager).get("deleted") == 1)
    assert not outcomes(manager).get("orphaned")


def outcomes(manager):
    return manager.metrics.total("actuator_deletions_total", "outcome", kind="ExternalDatabase")


def test_a_force_deletion_asks_no_server_and_leaves_a_record(
    databases, serve, servers, engine, login, ground
):
    manager = serve()
    name = databases.provision(engine)
    user = login()
    ground.inject_failure("everything-fails")
    databases.delete()
    said = databases.wait_for("False", "DeletionFailed")
    assert said["codes"] == ["ERR_INFRA_UNAUTHENTICATED"]
    databases.annotate(**{FORCE_DELETION: "true"})
    eventually(databases.is_gone)
    assert databases.has(engine, name)
    ids = {f"{engine}::Database": f"{engine}/{name}", f"{engine}::Login": user}
    assert databases.orphans() == ids
    eventually(lambda: outcomes(manager).get("orphaned") == 1)


def test_verification_distinguishes_existing_and_deleted_resources(
    databases, serve, servers, engine, login, ground
):
    manager = serve()
    databases.provision(engine)
    (actuator,) = (registration.actuator for registration in manager.registrations)
    name = databases.get()["spec"]["name"]
    user = login()
    owner = f"{databases.namespace}/orders"
    tags = {"login": user, "owner": owner, "database": name}
    database = ExternalResource(type=f"{engine}::Database", id=f"{engine}/{name}", tags=tags)
    account = ExternalResource(type=f"{engine}::Login", id=user, tags=tags)
    another = ExternalResource(type=f"{engine}::Database", tags={**tags, "login": "0" * 32})
    assert [actuator.still_exists(item) for item in (database, account, another)] == [1, 1, 0]
    databases.delete()
    eventually(databases.is_gone)
    assert not actuator.still_exists(database)
    assert not actuator.still_exists(account)
    assert actuator.still_exists(ExternalResource(type="oracle::Database", tags=tags)) is None


def test_a_deletion_that_was_tried_for_long_enough_waits_for_a_change(
    databases, serve, engine, ground
):
    manager = serve(give_up_after={None: 0})
    databases.provision(engine)
    ground.inject_failure("deletion-denied")
    databases.delete()
    said = databases.wait_for("False", "DeletionFailedPermanently")
    assert said["codes"] == ["ERR_INFRA_UNAUTHORIZED"]
    eventually(lambda: outcomes(manager).get("gave_up") == 1)
    ground.repair_failure()
    databases.patch({"spec": {"deletionPolicy": "Retain"}})
    eventually(databases.is_gone)
    eventually(lambda: outcomes(manager)["deleted"] == 1)


@pytest.mark.parametrize("ground", GROUNDS, indirect=True)
def test_a_lost_login_is_created_again_and_reported(databases, serve, login):
    serve()
    databases.provision(Engine.MYSQL)
    databases.as_administrator(Engine.MYSQL, f"DROP USER '{login()}'@'%'")
    databases.look_again()
    eventually(lambda: databases.events("LoginRecreated"))
    name = databases.connection()["database"]
    eventually(lambda: run(Engine.MYSQL, databases.door(), "SELECT 1", name) == [(1,)])


def test_a_secret_that_is_gone_comes_back_and_leads_to_the_same_data(databases, serve, engine):
    serve()
    name = databases.provision(engine)
    run(engine, databases.door(), "CREATE TABLE t (n integer)", name)
    before = databases.connection()["password"]
    databases.client.delete(SECRETS, "orders-connection", databases.namespace)
    databases.look_again()

    def rows():
        try:
            return run(engine, databases.door(), "SELECT count(*) FROM t", name)
        except (psycopg.Error, pymysql.Error) as error:  # not before the login has the password
            raise AssertionError from error

    assert eventually(rows) == [(0,)]
    assert databases.connection()["password"] != before


def test_a_password_satisfies_a_policy_that_wants_characters_of_every_class(
    databases, serve, monkeypatch
):
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: "a" * 32)
    serve()
    databases.provision(Engine.MYSQL)
    password = databases.connection()["password"]
    for characters in (string.ascii_lowercase, string.ascii_uppercase, string.digits, "-"):
        assert set(password) & set(characters)


def test_external_changes_to_the_secret_are_reverted(databases, serve):
    serve()
    databases.provision(Engine.POSTGRES)
    before = databases.connection()
    wrong = {"data": {"host": "eA==", "uri": None}}
    databases.client.patch(SECRETS, "orders-connection", databases.namespace, wrong)
    databases.look_again()
    eventually(lambda: databases.connection() == before)


def test_a_secret_of_another_owner_is_not_written(databases, serve, engine):
    meta = {"name": "orders-connection", "namespace": databases.namespace}
    theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"password": "eA=="}}
    databases.client.create(SECRETS, theirs)
    serve()
    name = databases.ask_for(engine)
    said = databases.wait_for("False", "ProvisionFailed")
    assert "Secret" in said["message"]
    assert "has another owner" in said["message"]
    assert databases.connection() == {"password": "x"}
    assert not databases.has(engine, name)


@on_every_server
def test_no_password_is_in_status_events_or_logs(databases, serve, engine, ground, caplog):
    caplog.set_level("DEBUG")
    serve()
    databases.provision(engine)
    passwords = {databases.connection()["password"], ground.endpoint(engine).password}
    ground.inject_failure("credentials-revoked")
    databases.look_again()
    databases.wait_for("False", "ProvisionFailed")
    ground.inject_failure("deletion-denied")
    databases.delete()
    databases.wait_for("False", "DeletionFailed")
    events = databases.client.list(EVENTS, databases.namespace)
    told = "\n".join([str(databases.get()), str(events), caplog.text])
    assert not [password for password in passwords if password in told]
