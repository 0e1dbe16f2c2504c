import io
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from actuator.errors import ActuatorError, ApiError, LeaseLost, RequeueAfter
from generic.serving import logs

logger = logging.getLogger("test.logs")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Secret:
    def __str__(self) -> str:
        return "password"


@pytest.fixture
def written(monkeypatch):
    """Configures logging for this test and returns where the lines go."""
    root = logging.getLogger()
    before = list(root.handlers)
    level = root.level

    def configure(level="info", format="json", stream=None, **more):
        stream = stream or io.StringIO()
        monkeypatch.setattr(sys, "stderr", stream)
        root.handlers.clear()  # pytest's own cannot take all that is logged here
        logs.configure(level, format, **more)
        return stream

    yield configure
    root.handlers[:] = before
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_time_level_message_logger_and_fields(written):
    out = written()
    logger.info("finalizer released", extra={"fields": {"object": "ns/name", "requests": 3}})
    [line] = lines(out)
    assert line.pop("ts").endswith("Z")
    assert line == {
        "level": "info",
        "msg": "finalizer released",
        "logger": "test.logs",
        "object": "ns/name",
        "requests": 3,
    }


def test_a_text_line_reads_time_level_message_and_fields(written):
    out = written(format="text")
    logger.warning("left outside", extra={"fields": {"object": "ns/name", "why": "no access"}})
    time, _, rest = out.getvalue().rstrip("\n").partition(" ")
    assert time.endswith("Z")
    assert rest == 'WARNING left outside object=ns/name why="no access"'


def test_colour_is_for_terminals_only(written, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = written(format="text", stream=Terminal())
    file = None
    logger.info("done")
    assert "\x1b[" in terminal.getvalue()
    file = written(format="text")
    logger.info("done")
    assert "\x1b[" not in file.getvalue()


def test_no_color_is_respected(written, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = written(format="text", stream=Terminal())
    logger.info("done")
    assert "\x1b[" not in terminal.getvalue()


def test_bound_fields_are_in_every_line_and_the_lines_own_win(written):
    out = written()
    log = logs.bind(logs.bind(logger, kind="Infrastructure", object="a"), object="b")
    log.info("one")
    log.info("two", extra={"fields": {"object": "c"}})
    assert [(line["kind"], line["object"]) for line in lines(out)] == [
        ("Infrastructure", "b"),
        ("Infrastructure", "c"),
    ]


def test_an_object_is_never_printed_only_its_type(written):
    out = written()
    data = {"secret": Secret(), "data": {"password": "hunter2"}, "items": [Secret(), 1]}
    logger.info("credentials read", extra={"fields": data})
    [line] = lines(out)
    assert line["secret"] == "<Secret>"
    assert line["data"] == "<dict>"
    assert line["items"] == ["<Secret>", 1]


def fail(error, **more):
    try:
        raise error
    except type(error):
        logger.exception("failed", **more)


def test_an_error_has_type_and_message(written):
    out = written()
    fail(ValueError("not\nlike this"))
    [line] = lines(out)
    assert line["error"] == {"type": "ValueError", "message": "not\nlike this"}


EXPECTED = (ActuatorError("x"), ApiError(503, "x"), RequeueAfter(1), LeaseLost("x"))


@pytest.mark.parametrize("format", ["json", "text"])
@pytest.mark.parametrize("level", ["debug", "info", "error"])
def test_a_bug_has_its_traceback_at_every_level_and_other_errors_at_debug(written, format, level):
    """As docs/troubleshooting.md promises of the reason `Error`."""
    for error in (*EXPECTED, KeyError("x"), SystemExit(1)):
        out = written(level=level, format=format)
        fail(error)
        is_bug = error not in EXPECTED
        assert ("test_logs.py" in out.getvalue()) is (is_bug or level == "debug")
        assert ("most recent call last" in out.getvalue()) is (is_bug or level == "debug")


def test_lines_of_a_traceback_are_indented_below_their_line(written):
    out = written(format="text")
    fail(KeyError("x"))
    first, *others = out.getvalue().splitlines()
    assert "ERROR" in first
    assert others[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") for line in others)


def test_a_traceback_is_bounded(written):
    """Two functions that call each other: Python shortens only the repetition of one line."""

    def ping(level):
        return pong(level + 1)

    nothing: dict[str, str] = {}

    def pong(level):
        return ping(level + 1) if level < 400 else nothing["x" * 100_000]

    out = written()
    try:
        ping(0)
    except KeyError:
        logger.exception("failed", extra={"fields": {"error": "deep"}})
    [line] = lines(out)
    assert len(line["traceback"]) <= 16 * 1024


def test_a_printed_line_reaches_a_pipe_at_once(written, monkeypatch):
    """In a pod, or under `actuator dev | tee`, which Python would write in blocks of 8 KiB."""
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe))
    written()
    print("here")
    assert pipe.getvalue() == b"here\n"


def test_an_error_given_as_a_field_is_printed_the_same_way(written):
    out = written()
    logger.error("failed", extra={"fields": {"error": ValueError("no")}})
    logger.error("failed", extra={"fields": {"error": "no"}})
    assert [line["error"] for line in lines(out)] == [
        {"type": "ValueError", "message": "no"},
        {"type": "", "message": "no"},
    ]


def test_an_errors_type_is_logged_once_where_the_field_names_it_too(written):
    out = written()
    fail(ValueError("no"), extra={"fields": {"error": "ValueError: no"}})
    assert lines(out)[0]["error"] == {"type": "ValueError", "message": "no"}


def test_a_text_line_stays_one_line_whatever_is_in_it(written):
    out = written(format="text")
    logger.error(
        "a\nb", extra={"fields": {"error": "x\ny\x1b[2J", "empty": "", "list": [1, "a b"]}}
    )
    [line] = out.getvalue().splitlines()
    assert line.endswith('a\\nb error="x\\ny\\u001b[2J" empty="" list=1,"a b"')


def test_a_field_named_like_a_part_of_the_line_does_not_replace_it(written):
    out = written()
    logger.info("done", extra={"fields": {"msg": "mine", "level": 9}})
    [line] = lines(out)
    assert (line["msg"], line["msg_"], line["level"], line["level_"]) == ("done", "mine", "info", 9)


def test_libraries_that_print_requests_are_heard_from_warning_on(written):
    out = written(level="debug")
    logging.getLogger("botocore.endpoint").debug("Authorization: AWS4 ...")
    logging.getLogger("urllib3.connectionpool").warning("connection pool is full")
    assert [line["logger"] for line in lines(out)] == ["urllib3.connectionpool"]


def test_configuring_again_replaces_the_configuration_before(written):
    first = written()
    second = written(level="error")
    logger.info("not heard")
    logger.error("heard once")
    assert first.getvalue() == ""
    assert [line["msg"] for line in lines(second)] == ["heard once"]


HOSTILE = "\x1b]0;owned\x07 \x9b31m \u202e \u2066 \u2028 \x7f \ud800 für"


class Unspeakable:
    """Has no text."""

    def __str__(self) -> str:
        raise SystemExit("no text")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class UnspeakableText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise SystemExit("no text")


@pytest.mark.parametrize("format", ["text", "json"])
def test_no_control_character_is_in_a_line_whatever_was_logged(written, format):
    out = written(level="debug", format=format)
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        logger.exception(HOSTILE, extra={"fields": {HOSTILE: HOSTILE, "list": [HOSTILE]}})
        logger.error("failed %s", HOSTILE, extra={"fields": {"error": error}})
    text = out.getvalue()
    assert text.replace("\n", "").isprintable()
    assert "für" in text
    assert "\\u009b31m" in text
    if format == "json":
        assert [line["msg"] for line in lines(out)] == [HOSTILE, f"failed {HOSTILE}"]


def test_every_key_of_extra_is_a_field(written):
    out = written()
    log = logs.bind(logger, object="a")
    log.info("made", extra={"network": "vpc-1", "fields": {"requests": 3}})
    [line] = lines(out)
    assert (line["network"], line["requests"], line["object"]) == ("vpc-1", 3, "a")


def test_a_field_may_be_named_like_an_attribute_of_a_record(written):
    out = written()
    log = logs.bind(logger)
    named = {"name": "n", "msg": "m", "message": "x", "args": "a", "levelname": "l", "asctime": "t"}
    log.info("made", extra=named)
    log.info("made", extra={"fields": 5})
    first, second = lines(out)
    assert first["msg"] == second["msg"] == "made"
    assert {key: first[f"{key}_" if key == "msg" else key] for key in named} == named
    assert second["fields"] == 5


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_value_without_text_is_shown_as_its_type(written, format):
    out = written(format=format)
    items = [UnspeakableText("x"), UnspeakableError()]
    logger.info("one", extra={"fields": {"value": Unspeakable(), "items": items}})
    logger.info("two %s", Unspeakable())
    logger.info(Unspeakable())
    logger.error("three", extra={"fields": {"error": UnspeakableError()}})
    try:
        raise UnspeakableError
    except UnspeakableError:
        logger.exception("four")
    text = out.getvalue()
    assert len([line for line in text.splitlines() if line[0] != " "]) == 5
    for words in ("<UnspeakableText>", "<UnspeakableError>", "two %s", "<Unspeakable>", "four"):
        assert words in text


@pytest.mark.parametrize("format", ["text", "json"])
def test_no_value_breaks_a_line(written, format):
    out = written(format=format)
    looped: list[Any] = [1]
    looped.append(looped)
    values = {"huge": 10**5000, "nan": float("nan"), "infinite": float("inf"), "looped": looped}
    logger.info("made", extra={"fields": values | {"small": -3, "half": 0.5, "flag": True}})
    assert out.getvalue().count("\n") == 1
    if format == "json":
        line = json.loads(out.getvalue(), parse_constant=pytest.fail)
        assert (line["huge"], line["nan"], line["looped"]) == ("<int>", "nan", [1, "<list>"])
        assert (line["small"], line["half"], line["flag"]) == (-3, 0.5, True)


def test_an_error_that_repeats_is_written_once_a_minute_with_their_number(written, monkeypatch):
    out = written(collapse=True)
    now = 1000.0
    monkeypatch.setattr("time.time", lambda: now)
    monkeypatch.setattr("time.time_ns", lambda: int(now * 1e9), raising=False)

    def fail(name):
        logger.error("operation failed", extra={"fields": {"object": name, "error": "denied"}})

    for _ in range(17):
        fail("a")
    fail("b")
    logger.info("operation failed")
    logger.info("operation failed")
    now += 61
    fail("a")
    fail("b")
    found = [(line.get("object"), line.get("repeated")) for line in lines(out)]
    assert found == [("a", None), ("b", None), (None, None), (None, None), ("a", 16), ("b", None)]


@pytest.mark.parametrize(
    ("seconds", "written_", "repeated"),
    [
        pytest.param([0, 60, 120], [True] * 3, [None] * 3, id="once a minute"),
        pytest.param([0, 59, 60], [True, False, True], [None, None, 1], id="its end"),
        pytest.param(
            [0, 1, 60, 61, 120, 180],
            [True, False, True, False, True, True],
            [None, None, 1, None, 1, None],
            id="each number is in one line",
        ),
        pytest.param([0, 1, 60, 120], [True, False, True, True], [None, None, 1, None], id="once"),
    ],
)
def test_the_lines_dropped_in_a_minute_are_counted_in_the_next_line(seconds, written_, repeated):
    repetitions = logs.Repetitions()
    found = []
    for number in seconds:
        record = logging.makeLogRecord({"msg": "failed", "levelno": logging.ERROR})
        record.created = 1000.0 + number
        record.fields = {"error": "denied"}
        found.append((repetitions.filter(record), vars(record)["fields"].get("repeated")))
    assert found == list(zip(written_, repeated, strict=True))


def test_every_error_is_written_where_lines_are_not_collapsed(written):
    out = written()
    for _ in range(3):
        logger.error("operation failed")
    assert len(lines(out)) == 3


def test_a_drill_shows_log_lines_of_authors_only(written):
    """Progress and tables replace the lines of the framework, its samples, and libraries."""
    out = written(only_authors=True)
    home = Path(logs.__file__).parents[2]
    library = Path(pytest.__file__).parent
    files = {
        "author": Path("/home/author/acme.py"),
        "framework": home / "generic" / "manager" / "manager.py",
        "sample": home / "extensions" / "aws" / "vpc.py",
        "library": library / "library.py",
        "Python": Path(logging.__file__).parent / "config.py",
    }
    for name, path in files.items():
        code = compile(f"logger.warning({name!r})", str(path), "exec")
        exec(code, {"logger": logger})
    assert [line["msg"] for line in lines(out)] == ["author"]
