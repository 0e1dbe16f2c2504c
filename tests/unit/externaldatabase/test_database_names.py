"""Names and addresses, before anything is asked of a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator import ConfigurationError
from actuator.codec import decode
from actuator.errors import DecodeError
from extensions.externaldatabase import extension, server_for
from extensions.externaldatabase.actuator import DatabaseActuator
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.kind import DeletionPolicy, Engine, ExternalDatabase
from extensions.externaldatabase.names import identifier, pattern, problem_with
from extensions.externaldatabase.server import Traffic
from generic import Manager
from generic.manager.options import Options
from tests.support.objects.stand_ins import UNUSED

TEXT = st.text(min_size=1, max_size=80)


@given(name=TEXT)
def test_a_quoted_identifier_ends_where_the_name_does(name):
    try:
        quoted = identifier(name)
    except ConfigurationError:
        return
    inner = quoted[1:-1]
    assert quoted[0] == quoted[-1] == "`"
    assert "`" not in inner.replace("``", "")
    assert inner.replace("``", "`") == name
    assert "\0" not in quoted


@given(name=st.from_regex(r"[a-z][a-z0-9_%-]{2,40}", fullmatch=True))
def test_a_pattern_stands_for_one_name_only(name):
    try:
        inner = pattern(name)[1:-1]
    except ConfigurationError:
        assert len(name) + name.count("_") + name.count("%") > 64
        return
    assert "_" not in inner.replace("\\_", "")
    assert "%" not in inner.replace("\\%", "")


@pytest.mark.parametrize("name", ["abc", "orders-2", "a_b", "z" * 63])
def test_a_plain_name_is_fine(name):
    assert problem_with(name) is None


@given(name=TEXT)
def test_the_problem_with_a_name_is_one_line(name):
    problem = problem_with(name)
    assert problem is None or "\n" not in problem


@given(user=TEXT, password=TEXT)
def test_an_endpoint_survives_its_url(user, password):
    there = DatabaseEndpoint(host="10.0.0.1", port=5433, user=user, password=password)
    assert DatabaseEndpoint.parse(there.url("postgresql"), 5432) == there
    assert DatabaseEndpoint.parse(there.url("mysql"), 1) == there


def test_a_bad_url_is_not_repeated_with_its_password():
    for url in ("postgres://u:hunter2@", "hunter2", "postgres://u:hunter2@h:port", "//[hunter2"):
        with pytest.raises(ConfigurationError) as refused:
            DatabaseEndpoint.parse(url, 5432)
        assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(DatabaseEndpoint(host="h", port=1, user="u", password="hunter2"))


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({}, "DATABASES_POSTGRES_URL or DATABASES_MYSQL_URL"),
        ({"DATABASES_MYSQL_URL": "mysql://h"}, "no host, user or password"),
        ({"DATABASES_GIVE_UP_AFTER": "soon"}, "DATABASES_GIVE_UP_AFTER=soon"),
        ({"DATABASES_REQUESTS_PER_SECOND": "0"}, "DATABASES_REQUESTS_PER_SECOND=0"),
    ],
)
def test_a_missing_or_wrong_setting_is_named(monkeypatch, variables, says):
    if variables and "DATABASES_MYSQL_URL" not in variables:
        variables = {"DATABASES_MYSQL_URL": "mysql://u:p@h", **variables}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=says):
        extension(Manager(Options()))


def test_environment_variables_configure_one_controller(monkeypatch):
    monkeypatch.setenv("DATABASES_POSTGRES_URL", "postgresql://u:p@h")
    monkeypatch.setenv("DATABASES_GIVE_UP_AFTER", "60")
    manager = Manager(Options())
    extension(manager)
    (added,) = manager.registrations
    assert (added.name, added.workers) == ("externaldatabase", 4)
    assert added.give_up_after == {None: 60.0}


def test_a_policy_is_one_that_there_is():
    def spec(policy):
        return decode(ExternalDatabase, {"spec": {"deletionPolicy": policy}}).spec

    assert spec("Retain").deletion_policy is DeletionPolicy.RETAIN
    with pytest.raises(DecodeError, match="expected one of Delete, Retain, got 'Maybe'"):
        spec("Maybe")


def test_an_engine_without_a_server_and_an_unknown_one_are_named_with_the_remedy():
    server = server_for(Engine.POSTGRES, "postgresql://u:p@h", Traffic(1))
    actuator = DatabaseActuator({Engine.POSTGRES: server})
    obj = decode(ExternalDatabase, {"spec": {"name": "orders", "engine": "mysql"}})
    (problem,) = actuator.validate(UNUSED, obj, UNUSED)
    assert problem.field == "spec.engine"
    remedy = "no server for mysql; set DATABASES_MYSQL_URL, or use one of: postgres"
    assert problem.detail == remedy
    with pytest.raises(ConfigurationError, match=remedy):
        actuator.delete(UNUSED, obj, UNUSED)
    with pytest.raises(DecodeError, match="expected one of postgres, mysql, got 'oracle'"):
        decode(ExternalDatabase, {"spec": {"engine": "oracle"}}).spec  # noqa: B018
