"""Which of Gardener's error codes a text means, for providers whose errors are only text.

The patterns are the provider's (Gardener documentation, "Error Codes": each extension brings its
own list). Broad words misclassify, and a wrong code can stop a shoot: prefer typed errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from actuator.errors import ActuatorError, ErrorCode, RequeueAfter, codes_of

__all__ = ["Patterns", "determine_error"]

Patterns = Mapping[ErrorCode, re.Pattern[str]]


def determine_error(error: Exception, patterns: Patterns) -> Exception:
    """The error with the codes that its text means; as it is where it carries codes, or none fit.

    A RequeueAfter stays one, its cause classified: when to look again is not lost (in Go it is).
    """
    if codes_of(error):
        return error
    if isinstance(error, RequeueAfter):
        if not isinstance(error.cause, Exception):
            return error
        return RequeueAfter(error.seconds, cause=determine_error(error.cause, patterns))
    codes = sorted(code for code, pattern in patterns.items() if pattern.search(str(error)))
    if not codes:
        return error
    coded = ActuatorError(str(error), codes=codes)
    coded.__cause__ = error
    return coded
