"""Classify error texts as Gardener error codes, for providers whose errors are only text.

Each extension supplies its provider's patterns (Gardener documentation, "Error Codes"). A broad
pattern misclassifies errors, and a wrong code can stop a shoot: prefer typed errors.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from actuator.errors import ActuatorError, ErrorCode, RequeueAfter, codes_of

Patterns = Mapping[ErrorCode, re.Pattern[str]]


def determine_error(error: Exception, patterns: Patterns) -> Exception:
    """Return the error with the codes whose patterns match its text; see `with_codes`."""
    return with_codes(
        error, lambda text: [code for code, pattern in patterns.items() if pattern.search(text)]
    )


def with_codes(error: Exception, classify: Callable[[str], Iterable[ErrorCode]]) -> Exception:
    """Return the error with the codes that `classify` finds in its text.

    Return it unchanged if it already carries codes, or if `classify` finds none. For a
    RequeueAfter, classify the cause and keep the seconds (Go's library loses them).
    """
    if codes_of(error):
        return error
    if isinstance(error, RequeueAfter):
        if not isinstance(error.cause, Exception):
            return error
        return RequeueAfter(error.seconds, cause=with_codes(error.cause, classify))
    codes = sorted(classify(str(error)))
    if not codes:
        return error
    coded = ActuatorError(str(error), codes=codes)
    coded.__cause__ = error
    return coded
