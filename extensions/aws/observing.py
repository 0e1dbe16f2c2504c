"""Hearing of every request to AWS in this process, for `actuator explore`; rehearsals alone use it.

The extension itself has no hook for that: boto3 tells of each request before it is sent and after
it was answered (Boto3 documentation, "Extensibility guide").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.handlers import BUILTIN_HANDLERS

_HEARD = "actuator-heard"


def observe(before: Callable[[str], None], after: Callable[[str], None]) -> None:
    """Both hear of each request of every session that is made from now on.

    What sessions have in common that do not exist yet is one list, and nothing is taken off it
    again: this is for processes that live for one purpose.
    """

    def sent(model: Any, context: dict[str, Any], **_: Any) -> None:
        context[_HEARD] = f"{model.service_model.service_name}: {model.name}"
        before(context[_HEARD])

    def answered(context: dict[str, Any], **_: Any) -> None:
        after(context[_HEARD])

    BUILTIN_HANDLERS.append(("before-call", sent))
    BUILTIN_HANDLERS.append(("after-call", answered))
    BUILTIN_HANDLERS.append(("after-call-error", answered))
