"""Log format: the fields of a log line and their text.

A message is a constant, its values are in fields: `log.info("done", extra={"fields": {...}})`.
`bind` returns a logger whose lines all carry the given fields. A field is text, a number, or a list
of these. Of any other value only the type is printed, so that no line contains an object with a
secret; libraries that print whole requests log from WARNING on only. Control characters are
escaped, and an object whose text cannot be read is shown as its type.

`configure` changes only the root logger, and the contents of records.
"""

import json
import logging
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import nullcontext
from datetime import UTC, date, datetime
from io import TextIOWrapper
from pathlib import Path, PurePath
from textwrap import indent
from traceback import format_exception
from typing import Any, Literal, TextIO
from uuid import UUID

from generic.kube.errorinfo import FRAMEWORK, LIBRARIES, is_unexpected
from generic.kube.printable import printable

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["text", "json"]

_TALKATIVE = frozenset({"boto3", "botocore", "kubernetes", "s3transfer", "urllib3"})
_SAMPLES = f"{Path(__file__).parents[2] / 'extensions'}{os.sep}"
_COLOURS = {"debug": 2, "info": 36, "warning": 33, "error": 31, "critical": 31}
_MINUTE = 60.0
_FRAMES = 30
"""Calls in a traceback, the innermost."""
_TRACEBACK = 16 * 1024
"""Maximum characters of a traceback, with those of its causes."""
_BARE = re.compile('[^ "=,]+')
_MESSAGE = logging.LogRecord.getMessage
_Plain = str | int | float | None | list[Any]


class Log(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines all carry `fields`, besides those of the line."""

    def __init__(self, logger: logging.Logger, fields: Mapping[str, object]) -> None:
        super().__init__(logger)
        self.fields = dict(fields)

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[object, MutableMapping[str, Any]]:
        """Add the fields; those of the line win. Every other key of `extra` becomes a field too."""
        extra = dict(kwargs.get("extra") or {})
        given = extra.pop("fields", {})
        named = given if isinstance(given, Mapping) else {"fields": given}
        return msg, {**kwargs, "extra": {"fields": {**self.fields, **extra, **named}}}


def bind(logger: logging.Logger | Log, **fields: object) -> Log:
    """Return a logger with these fields, and those of `logger` if it is a Log."""
    if isinstance(logger, Log):
        return Log(logger.logger, {**logger.fields, **fields})
    return Log(logger, fields)


def configure(
    level: Level, format: Format, *, collapse: bool = False, only_authors: bool = False
) -> None:
    """Log to stderr from `level` on, one record per line: "text" for people, "json" for machines.

    With `only_authors`, lines of the framework, its samples and installed packages are dropped.

    With `collapse`, identical errors within a minute are counted, not repeated. A second call
    replaces the handler of the first. Texts that an author prints are written line by line as well.
    Nothing is logged if stderr is closed.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # to a pipe, Python writes blocks of 8 KiB
        sys.stdout.reconfigure(line_buffering=True)
    handler = _OwnHandler()
    tracebacks = level == "debug"
    if format == "json":
        handler.setFormatter(JsonFormatter(tracebacks=tracebacks))
    else:
        colour = _wants_colour(sys.stderr)
        handler.setFormatter(TextFormatter(tracebacks=tracebacks, colour=colour))
    handler.addFilter(_is_of_author if only_authors else _is_ours_or_important)
    if collapse:
        handler.addFilter(Repetitions())
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h, _OwnHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


class _OwnHandler(logging.Handler):
    """A class of its own, so that `configure` recognizes its handler.

    The stream is the stderr at the time of the line, which a program may replace or close.
    """

    def handle(self, record: logging.LogRecord) -> bool:
        """Format outside the lock: a hanging __str__ of an author blocks no other thread."""
        if not self.filter(record):
            return False
        try:
            line = self.format(record)
            stream: TextIO | None = sys.stderr  # None if it is closed
            with self.lock or nullcontext():
                if stream is not None:
                    stream.write(f"{line}\n")
                    stream.flush()
        except Exception:
            self.handleError(record)
        return True


class Repetitions(logging.Filter):
    """Drops the lines of an error after the first in each minute, which then counts them."""

    def __init__(self) -> None:
        super().__init__()
        self._since = 0.0
        self._seen = Counter[str]()
        self._before = Counter[str]()
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the line; `repeated` is the number of lines dropped before."""
        if record.levelno < logging.ERROR:
            return True
        given = getattr(record, "fields", None)
        text = f"{record.name} {_text(record, _MESSAGE)} {_fields(record)}"
        with self._lock:
            if record.created - self._since >= _MINUTE:
                self._since, self._seen, self._before = record.created, Counter(), self._seen
            self._seen[text] += 1
            first = self._seen[text] == 1
            dropped = self._before.pop(text, 1) - 1
        if dropped and isinstance(given, Mapping):
            record.fields = {**given, "repeated": dropped}
        return first


class TextFormatter(logging.Formatter):
    """Time, level, message, then key=value."""

    def __init__(self, *, tracebacks: bool, colour: bool) -> None:
        """With `tracebacks`, those of exceptions raised on purpose follow as well."""
        super().__init__()
        self._tracebacks = tracebacks
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; the traceback of an unexpected exception follows it."""
        level = record.levelname.lower()
        fields = _fields(record)
        kind, message = _error(record, fields)
        if kind or message:
            fields["error"] = f"{kind}: {message}" if kind and message else kind or message
        pairs = "".join(
            f" {self._paint(2, f'{printable(key)}=')}{_quoted(value)}"
            for key, value in fields.items()
        )
        painted = self._paint(_COLOURS.get(level, 0), f"{level.upper():<7}")
        line = f"{_timestamp(record)} {painted} {printable(_text(record, _MESSAGE))}{pairs}"
        trace = _traceback(record, expected=self._tracebacks)
        return f"{line}\n{indent(trace, '  ')}" if trace else line

    def _paint(self, colour: int, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour else text


class JsonFormatter(logging.Formatter):
    """Formats one object per line: ts, level, msg, logger, the fields, and error {type, message}.

    A field with one of these names gets an underscore.
    """

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__()
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "msg": _text(record, _MESSAGE),
            "logger": record.name,
        }
        fields = _fields(record)
        kind, message = _error(record, fields)
        fields.pop("error", None)
        line.update({f"{key}_" if key in line else key: value for key, value in fields.items()})
        if kind or message:
            line["error"] = {"type": kind, "message": message}
        if trace := _traceback(record, expected=self._tracebacks):
            line["traceback"] = trace
        return printable(json.dumps(line, ensure_ascii=False))


def _text(value: Any, get: Callable[[Any], str] = str) -> str:
    """Return the text of a value; if __str__ raises, its type or, for a record, its format."""
    if type(value) is str:
        return value
    try:
        return get(value)
    except BaseException:
        return f"<{type(value).__name__}>" if get is str else _text(value.msg)


def _fields(record: logging.LogRecord) -> dict[str, _Plain]:
    """Return the fields of a line as printable values; `_error` handles "error"."""
    given = getattr(record, "fields", None)
    if not isinstance(given, Mapping):
        return {}
    return {_text(key): _plain(value) for key, value in given.items()}


def _error(record: logging.LogRecord, fields: Mapping[str, _Plain]) -> tuple[str, str]:
    """Return type and message of the error of a line, each "" without one."""
    given = getattr(record, "fields", None)
    error: object = given.get("error") if isinstance(given, Mapping) else None
    raised = record.exc_info[1] if record.exc_info else None
    if isinstance(error, BaseException):
        return type(error).__name__, _text(error)
    kind = type(raised).__name__ if raised else ""
    text = fields.get("error")
    message = str(text) if text is not None else "" if raised is None else _text(raised)
    return kind, message.removeprefix(f"{kind}: ")


def _plain(value: object, *, nested: bool = False) -> _Plain:
    if type(value) is str or value is None:
        return value
    if isinstance(value, (int, float)) and abs(value) < 2**64:
        return value
    if isinstance(value, (int, float, str, date, PurePath, UUID, BaseException)):
        return _text(value)  # JSON has no NaN, and Python writes no integer of 5,000 digits
    if isinstance(value, (list, tuple, set, frozenset)) and not nested:
        return [_plain(item, nested=True) for item in value]
    return f"<{type(value).__name__}>"


def _quoted(value: _Plain) -> str:
    if isinstance(value, str):
        bare = value.isprintable() and _BARE.fullmatch(value)
        return value if bare else printable(json.dumps(value, ensure_ascii=False))
    if isinstance(value, list):
        return ",".join(_quoted(item) for item in value) or "[]"
    return json.dumps(value)


def _timestamp(record: logging.LogRecord) -> str:
    time = datetime.fromtimestamp(record.created, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _traceback(record: logging.LogRecord, *, expected: bool) -> str:
    """Return the end of the traceback; with `expected`, also of exceptions raised on purpose."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None or not (expected or is_unexpected(error)):
        return ""
    text = "".join(format_exception(error, limit=-_FRAMES))
    return printable(text[-_TRACEBACK:].rstrip(), "\n")


def _wants_colour(stream: TextIO | None) -> bool:
    """See no-color.org."""
    return (
        stream is not None
        and stream.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def _is_of_author(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith((*FRAMEWORK, *LIBRARIES, _SAMPLES))


def _is_ours_or_important(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] not in _TALKATIVE
