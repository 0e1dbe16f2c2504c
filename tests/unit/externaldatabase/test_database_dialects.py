"""Statements for MySQL and MariaDB, and the meaning of their error numbers, without a server."""

import sqlite3
from contextlib import closing

import pymysql
import pytest

from actuator import ErrorCode
from extensions.externaldatabase import mysql
from extensions.externaldatabase.dialects import MARIADB, MYSQL, dialect_of
from extensions.externaldatabase.endpoint import DatabaseEndpoint
from extensions.externaldatabase.server import Claim, ClaimState, RequestRefused, Traffic

HERE = DatabaseEndpoint(host="127.0.0.1", port=3306, user="u", password="hunter2", tls=False)
CLAIM = Claim(database="a_b%", login="0" * 32, owner="shop/orders")
NOTHING = ClaimState(holder=None, has_login=False)
WHOLE = ClaimState(holder=CLAIM.login, has_login=True)
UNMARKED = ClaimState(holder=CLAIM.login, has_login=True, marked=False)

LOGIN = f"'{CLAIM.login}'@'%'"
VERBS = ("CREATE USER IF NOT EXISTS", "ALTER USER")
SET_MARIADB = [f"{verb} {LOGIN} IDENTIFIED BY 'p''w'" for verb in VERBS]
SHA2 = "IDENTIFIED WITH caching_sha2_password BY 'p''w'"
SET_MYSQL = [f"{verb} {LOGIN} {SHA2}" for verb in VERBS]
MARK = f"actuator {CLAIM.login} shop/orders"
MARK_MYSQL = f"CREATE PROCEDURE `a_b%`.actuator_owner() COMMENT '{MARK}' BEGIN END"
GRANT = rf"GRANT ALL PRIVILEGES ON `a\_b\%`.* TO {LOGIN}"
LITERAL = f"GRANT ALL PRIVILEGES ON `a_b%`.* TO {LOGIN}"
SETTING = "SELECT @@partial_revokes"
DROP_LOGIN = f"DROP USER IF EXISTS {LOGIN}"
DROP_DATABASE = "DROP DATABASE IF EXISTS `a_b%`"


class Connection:
    """Of a server that reports a version, and answers each query with the same row."""

    def __init__(self, version, row=(0,)):
        self.version = version
        self.row = row
        self.sent = []

    def get_server_info(self):
        return self.version

    def cursor(self):
        return self

    def execute(self, statement, values=None):
        texts = {
            key: "'{}'".format(text.replace("'", "''")) for key, text in (values or {}).items()
        }
        self.sent.append(statement % texts if values else statement)

    def fetchall(self):
        return [self.row]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


@pytest.fixture
def connected(monkeypatch):
    """Make a server whose connections are this one."""

    def make(connection):
        monkeypatch.setattr(mysql, "connect", lambda *_: connection)
        return mysql.MySqlServer(HERE, Traffic(1e6))

    return make


@pytest.mark.parametrize(
    ("version", "dialect"),
    [
        ("5.5.5-10.11.6-MariaDB-0+deb12u1", MARIADB),
        ("11.4.5-MariaDB-log", MARIADB),
        ("8.0.16", MYSQL),
        ("8.0.40-0ubuntu0.24.04.1", MYSQL),
        ("8.4.5-5", MYSQL),
        ("9.7.4-2", MYSQL),
        ("10.0.0", MYSQL),
        ("8.0.15", None),  # it has no partial_revokes
        ("5.7.44-log", None),
        ("", None),
        ("unknown", None),
    ],
)
def test_the_version_of_a_server_says_which_product_it_is(version, dialect):
    assert dialect_of(version) is dialect


@pytest.mark.parametrize(
    ("version", "found", "row", "sent"),
    [
        (
            "10.11.6-MariaDB",
            NOTHING,
            (0,),
            [f"CREATE DATABASE `a_b%` COMMENT '{MARK}'", *SET_MARIADB, GRANT],
        ),
        ("10.11.6-MariaDB", WHOLE, (0,), [*SET_MARIADB, GRANT]),
        (
            "8.0.36",
            NOTHING,
            (0,),
            [SETTING, *SET_MYSQL, "CREATE DATABASE `a_b%`", MARK_MYSQL, GRANT],
        ),
        ("8.0.36", UNMARKED, (0,), [SETTING, *SET_MYSQL, MARK_MYSQL, GRANT]),
        ("8.0.36", WHOLE, (0,), [SETTING, *SET_MYSQL, GRANT]),
        ("8.0.36", WHOLE, (1,), [SETTING, *SET_MYSQL, LITERAL]),
    ],
    ids=["mariadb", "mariadb-again", "mysql", "unmarked", "mysql-again", "partial-revokes"],
)
def test_each_product_gets_its_own_statements(connected, version, found, row, sent):
    connection = Connection(version, row)
    connected(connection).provision(CLAIM, "p'w", found, lambda: None)
    assert connection.sent == sent


@pytest.mark.parametrize(
    ("version", "row", "sent"),
    [
        ("10.11.6-MariaDB", (MARK, 1, 0), [DROP_LOGIN, DROP_DATABASE]),
        ("8.0.36", (MARK, 1, 0), [DROP_DATABASE, DROP_LOGIN]),
        ("8.0.36", ("", 1, 1), [MARK_MYSQL, DROP_DATABASE, DROP_LOGIN]),
    ],
    ids=["mariadb", "mysql", "unmarked"],
)
def test_a_database_is_dropped_while_its_login_or_its_mark_names_the_owner(
    connected, version, row, sent
):
    connection = Connection(version, row)
    connected(connection).remove(CLAIM, lambda: None)
    assert connection.sent[1:] == sent


@pytest.mark.parametrize(
    ("statement", "number", "cleanup"),
    [
        ("CREATE DATABASE", 1007, [DROP_LOGIN]),  # it exists
        ("CREATE PROCEDURE", 1304, [DROP_LOGIN]),  # it exists
        ("CREATE PROCEDURE", 1044, []),
    ],
)
def test_the_login_of_a_name_that_another_took_meanwhile_is_dropped(
    connected, statement, number, cleanup
):
    """Without privileges it would claim any empty database of that name, at any later time."""

    class Failing(Connection):
        def execute(self, sent, values=None):
            super().execute(sent, values)
            if sent.startswith(statement):
                raise pymysql.OperationalError(number, "refused")

    connection = Failing("8.0.36")
    with pytest.raises(RequestRefused, match="refused"):
        connected(connection).provision(CLAIM, "p'w", NOTHING, lambda: None)
    refused = [sent for sent in connection.sent if sent.startswith(statement)]
    assert connection.sent[connection.sent.index(*refused) + 1 :] == cleanup


def test_a_function_with_the_name_of_the_mark_changes_nothing():
    """A login may create one in its database; a second row would fail each look at it."""
    with closing(sqlite3.connect(":memory:")) as catalogue:
        catalogue.execute("ATTACH ':memory:' AS information_schema")
        columns = "ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_COMMENT"
        catalogue.execute(f"CREATE TABLE information_schema.ROUTINES ({columns})")
        catalogue.execute("CREATE TABLE information_schema.SCHEMATA (SCHEMA_NAME)")
        catalogue.execute("INSERT INTO information_schema.SCHEMATA VALUES ('ours'), ('others')")
        routines = [
            ("ours", "actuator_owner", "PROCEDURE", MARK),
            ("ours", "actuator_owner", "FUNCTION", "of the login"),
            ("others", "actuator_owner", "FUNCTION", MARK),
        ]
        insert = "INSERT INTO information_schema.ROUTINES VALUES (?, ?, ?, ?)"
        catalogue.executemany(insert, routines)
        rows = catalogue.execute(MYSQL.databases).fetchall()
    assert sorted(rows) == [("others", ""), ("ours", MARK)]


@pytest.mark.parametrize("mark", ["", "actuator of-another shop/orders"])
def test_a_database_of_others_is_not_dropped(connected, mark):
    connection = Connection("8.0.36", (mark, 1, 0))
    connected(connection).remove(CLAIM, lambda: None)
    assert connection.sent[1:] == [DROP_LOGIN]


def test_attempts_to_connect_are_limited_like_other_requests(monkeypatch):
    """A server that refuses all connections must not get one after the other."""

    class Noted(Traffic):
        sent: tuple[str, ...] = ()

        def request(self, what):
            self.sent = (*self.sent, what)
            return super().request(what)

    def refused(_there):
        raise pymysql.OperationalError(2003, "connection refused")

    monkeypatch.setattr(mysql, "connect", refused)
    traffic = Noted(1e6)
    with pytest.raises(RequestRefused, match="did not accept a connection: connection refused"):
        mysql.MySqlServer(HERE, traffic).look(CLAIM)
    assert traffic.sent == ("mysql: accept a connection",)


def test_an_old_server_is_refused_in_one_sentence_that_names_valid_versions(connected):
    with pytest.raises(RequestRefused) as refused:
        connected(Connection("5.7.44")).look(CLAIM)
    assert refused.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    assert str(refused.value) == (
        "MySQL or MariaDB at 127.0.0.1:3306 did not serve: it is version 5.7.44; "
        "use MySQL 8.0.16 or later, or MariaDB 10.5 or later"
    )


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (1045, ErrorCode.ERR_INFRA_UNAUTHENTICATED),  # access denied
        (1862, ErrorCode.ERR_INFRA_UNAUTHENTICATED),  # the password has expired
        (3118, ErrorCode.ERR_INFRA_UNAUTHENTICATED),  # MySQL: the account is locked
        (3955, ErrorCode.ERR_INFRA_UNAUTHENTICATED),  # too many failed logins
        (4151, ErrorCode.ERR_INFRA_UNAUTHENTICATED),  # MariaDB: the account is locked
        (1044, ErrorCode.ERR_INFRA_UNAUTHORIZED),
        (1227, ErrorCode.ERR_INFRA_UNAUTHORIZED),
        (1040, ErrorCode.ERR_INFRA_RESOURCES_DEPLETED),
        (2013, ErrorCode.ERR_INFRA_DEPENDENCIES),
        (1105, ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES),
        (1064, ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES),
    ],
)
def test_an_error_number_has_its_code_and_no_statement_is_repeated(connected, number, code):
    class Failing(Connection):
        def execute(self, statement, values=None):
            raise pymysql.OperationalError(number, "near 'BY hunter2'" * (number == 1064))

    with pytest.raises(RequestRefused) as refused:
        connected(Failing("8.0.36")).look(CLAIM)
    assert refused.value.codes == (code,)
    assert "hunter2" not in str(refused.value)
