"""ErrorInfo: the data of an exception, read once and bounded, as plain values.

An actuator can raise any exception: its text may be huge or never return, its causes may form a
cycle, its attributes may have any type. `read_error` runs the exception's own code (`__str__`,
properties), so it belongs inside the guarded call, under the time limit of that call.
Not here: the consequences for the object (`reconciler`, `reporter`).
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path, PurePath
from sysconfig import get_path
from traceback import walk_stack, walk_tb
from types import FrameType
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from actuator.codec import CUT
from actuator.errors import (
    ActuatorError,
    ApiError,
    Cancelled,
    ConfigurationError,
    DeadlineExceeded,
    DecodeError,
    ErrorCode,
    NotServed,
    RequeueAfter,
    check_seconds,
)
from actuator.suggestions import did_you_mean
from generic.kube.contractmistakes import mistake
from generic.kube.printable import printable
from generic.kube.refusals import DENIED, reason_of, remedy_for

MAX_TEXT = 8192
"""Maximum length of an error's text, in bytes of UTF-8."""

_HOME = Path(__file__).parents[2]
FRAMEWORK = tuple(f"{_HOME / name}{os.sep}" for name in ("actuator", "generic"))
"""The folders of this framework, without its samples."""
_INSTALLED = tuple({f"{get_path(name)}{os.sep}" for name in ("purelib", "platlib")})
LIBRARIES = (*_INSTALLED, f"{get_path('stdlib')}{os.sep}", "<")
"""The folders of Python and of installed packages; generated code has a name like "<string>"."""
_MAX_CAUSES = 16
_MAX_CODES = 8
_EXPECTED = (ActuatorError, ApiError, Cancelled, DecodeError, RequeueAfter)
"""Exceptions raised on purpose; any other is counted as a bug."""
_CODES = {code.value: code for code in ErrorCode}
T = TypeVar("T")


class Raised(Exception):
    """Replaces an unexpected exception in a log: its traceback, and its text as read."""


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """The data of an error; for a RequeueAfter with a cause, the data of the cause."""

    cls: type[BaseException]
    text: str
    """One line for people, at most MAX_TEXT bytes."""
    codes: tuple[ErrorCode, ...] = ()
    """Gardener's error codes of the error and its causes."""
    reason: str = ""
    """The error's own CamelCase reason for conditions, if it has one."""
    blocked_reason: str = "Error"
    """The reason of a blocked deletion, in one CamelCase word."""
    requeue_after: float | None = None
    """Seconds of a RequeueAfter."""
    waits: bool = False
    """Whether this is a RequeueAfter without a cause: unfinished, but no error."""
    retry_after: float | None = None
    """Seconds from the API server's Retry-After."""
    is_bug: bool = False
    """Whether the error was not raised on purpose."""
    unexpected: Raised | None = None
    """The exception of a bug for the log, unless the text says what to do."""

    def is_a(self, *classes: type[BaseException]) -> bool:
        """Whether the error is of one of these classes."""
        return issubclass(self.cls, classes)


def describe(error: BaseException) -> str:
    """Return one line about an error; it names the class if the text alone is not enough."""
    text = _guarded(lambda: str.__str__(str(error)), "")
    if isinstance(error, AttributeError) and error.name:
        text += _guarded(lambda: did_you_mean(error.name or "", dir(error.obj)), "")
    text = printable(" ".join(text[: 4 * MAX_TEXT].split()))
    if isinstance(error, DecodeError):
        text = f"the object cannot be read: {text}"
    elif not (isinstance(error, _EXPECTED) and text):
        name = type(error).__name__
        text = f"{name}: {text}" if text else name
    return shorten(text)


def read_error(error: BaseException) -> ErrorInfo:
    """Return the data of `error`. Raises nothing."""
    chain = list(_chain(error))
    seconds = None
    cause = error
    if isinstance(error, RequeueAfter):
        seconds = _guarded(lambda: check_seconds(error.seconds), 60.0)
        given = _guarded(lambda: error.cause, None)
        cause = given if isinstance(given, BaseException) else error
    own = ""
    if isinstance(cause, ActuatorError):
        reason = _guarded(partial(getattr, cause, "reason", ""), "")
        own = _guarded(lambda: shorten(str.__str__(reason), 256), "")
    after = _guarded(lambda: cause.retry_after, None) if isinstance(cause, ApiError) else None
    wrong = shorten(printable(_guarded(lambda: mistake(cause), "")))
    text = wrong or describe(cause)
    is_bug = is_unexpected(cause)
    codes, remark = _codes(chain)
    refusal, remedy = _refusal(chain)
    if isinstance(cause, ApiError) or refusal == "Forbidden":
        text = _with(text, remedy and f"; {remedy}")
    text = _with(text, remark)
    at = place(cause) if is_bug else ""
    return ErrorInfo(
        cls=type(cause),
        text=_with(text, at and f" ({at})"),
        codes=codes,
        reason=own,
        blocked_reason=refusal or _blocked_reason(cause, own),
        requeue_after=seconds,
        waits=isinstance(error, RequeueAfter) and cause is error,
        retry_after=_guarded(lambda: None if after is None else check_seconds(after), None),
        is_bug=is_bug,
        unexpected=_raised(cause, text) if is_bug and not wrong else None,
    )


def with_text(info: ErrorInfo, change: Callable[[str], str]) -> ErrorInfo:
    """Return the data with changed texts, also the one that a log shows."""
    raised = info.unexpected
    if raised is not None:
        raised = type(raised)(change(str(raised))).with_traceback(raised.__traceback__)
    return replace(info, text=change(info.text), unexpected=raised)


def is_unexpected(error: BaseException) -> bool:
    """Whether the error was not raised on purpose, and so is a bug."""
    return not isinstance(error, _EXPECTED)


def place(error: BaseException) -> str:
    """Return "module.py:LINE" of the author's code that raised the error, or ""."""
    return _authors(walk_tb(error.__traceback__))


def where_raised(error: BaseException) -> str:
    """Return " (module.py:LINE)" of the author's code that raised the error, or ""."""
    found = place(error)
    if isinstance(error, SyntaxError) and error.filename:
        found = f"{PurePath(error.filename).name}:{error.lineno}"
    return f" ({found})" if found else ""


@contextmanager
def authors_code(name: str, *passed: type[Exception]) -> Iterator[None]:
    """Raise ConfigurationError, with `name` and the place, for any error of an author's code.

    Errors that are raised on purpose pass, and those of the types `passed`.
    """
    expected: tuple[type[Exception], ...] = (ActuatorError, ApiError, *passed)
    try:
        yield
    except expected:
        raise
    except (Exception, SystemExit) as error:
        [*_, (frame, _)] = walk_tb(error.__traceback__)
        ours = frame.f_code.co_filename.startswith(FRAMEWORK)
        plain = ours and isinstance(error, TypeError | ValueError)  # as `Manager.add` raises
        text = str(error) if plain else describe(error)
        raise ConfigurationError(f"{name}: {text}{where_raised(error)}") from error


def standing(thread: int) -> str:
    """Return "module.py:LINE" of the author's code that a thread executes now, or ""."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented
    return _authors(reversed([*walk_stack(frame)])) if frame else ""


def _authors(calls: Iterable[tuple[FrameType, int]]) -> str:
    """Return the innermost place in the author's code, from the calls, the outermost first.

    Of an extension that is installed among libraries, it is the outermost package of these.
    """
    named = [(frame.f_code.co_filename, line) for frame, line in calls]
    found = [item for item in named if not item[0].startswith(FRAMEWORK)]
    own = [item for item in found if not item[0].startswith(LIBRARIES)]
    if not own:
        installed = [item for item in found if item[0].startswith(_INSTALLED)]
        own = [item for item in installed if _package(item[0]) == _package(installed[0][0])]
    return f"{PurePath(own[-1][0]).name}:{own[-1][1]}" if own else ""


def _package(file: str) -> str:
    return file.removeprefix(next(filter(file.startswith, _INSTALLED))).partition(os.sep)[0]


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text in at most `limit` bytes of UTF-8; an ellipsis marks a cut.

    Removes the mark of unreadable values (CUT), which would make the containing object unreadable.
    """
    raw = text.replace(CUT, "…").encode(errors="replace")
    if len(raw) <= limit:
        return raw.decode()
    return raw[: limit - 3].decode(errors="ignore") + "…"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, each once, also if they form a cycle."""
    seen: set[int] = set()
    current: object = error
    while isinstance(current, BaseException) and id(current) not in seen:
        if len(seen) == _MAX_CAUSES:
            return
        seen.add(id(current))
        yield current
        asked_for = _guarded(partial(getattr, current, "cause", None), None)
        is_wrapped = isinstance(current, RequeueAfter) and isinstance(asked_for, BaseException)
        raised_from = _guarded(partial(getattr, current, "__cause__", None), None)
        current = asked_for if is_wrapped else raised_from


def _codes(chain: list[BaseException]) -> tuple[tuple[ErrorCode, ...], str]:
    """Return the codes of the chain, and a remark about an unknown one.

    Some refusals and an unreadable object imply a code.
    """
    found: dict[ErrorCode, None] = {}
    remark = ""
    unreadable = any(isinstance(error, DecodeError) for error in chain[:2])
    if unreadable or any(isinstance(error, NotServed) for error in chain):
        found[ErrorCode.ERR_CONFIGURATION_PROBLEM] = None
    for error in chain:
        # Gardener retries no shoot with this code, so a server that is down must not lead to it.
        if isinstance(error, ApiError) and DENIED.search(describe(error)):
            found[ErrorCode.ERR_PROBLEMATIC_WEBHOOK] = None
        if isinstance(error, ActuatorError):
            codes: list[str] = _guarded(partial(_strings, error), [])
            found.update((_CODES[code], None) for code in codes if code in _CODES)
            if unknown := [code for code in codes if code not in _CODES]:
                shown = f"{unknown[0][:60]!r} is ignored{did_you_mean(unknown[0], _CODES)}"
                remark = f"; unknown error code {shown}"
    return tuple(found), remark


def _strings(error: ActuatorError) -> list[str]:
    codes = islice(error.codes, _MAX_CODES)
    return [str.__str__(code if isinstance(code, str) else type(code).__name__) for code in codes]


def _refusal(chain: list[BaseException]) -> tuple[str, str]:
    """Return the reason of the first refusal in the chain with its remedy, each "" without one."""
    for error in chain:
        if isinstance(error, ApiError):
            text = describe(error)
            if reason := _guarded(partial(reason_of, error, text), ""):
                return reason, remedy_for(reason, text)
    return "", ""


def _with(text: str, end: str) -> str:
    """Return the text, shortened, with this end."""
    return f"{shorten(text, MAX_TEXT - len(end.encode()))}{end}" if end else text


def _blocked_reason(error: BaseException, own: str) -> str:
    if own:
        return own
    expected = isinstance(error, (ActuatorError, DeadlineExceeded))
    return type(error).__name__ if expected else "Error"


def _raised(error: BaseException, text: str) -> Raised:
    """Return a Raised named like the exception, without the causes, whose texts are unbounded."""
    module = _guarded(lambda: str.__str__(type(error).__module__), "builtins")
    cls: type[Raised] = type(type(error).__name__, (Raised,), {"__module__": module})
    raised = cls(text.removeprefix(f"{cls.__name__}: "))
    raised.__traceback__ = error.__traceback__
    return raised


def _guarded(read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except BaseException:  # a failing property of an author's exception carries no data
        return otherwise
