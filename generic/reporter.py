"""Reporter: how what happens to an object becomes visible: a log line, an event, a metric.

What an error is called, and which codes it carries, is decided here once. The status of the
object itself is `attempt`'s business.
"""

from __future__ import annotations

import logging

import attrs

from actuator.cluster import FORCE_DELETION
from actuator.errors import (
    ActuatorError,
    ApiError,
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    ErrorCode,
    codes_of,
)
from actuator.interface import ExternalResource
from actuator.meta import Kind
from generic import logs
from generic.events import About, EventRecorder
from generic.force_delete import Stripped
from generic.metrics import ControllerMetrics, Outcome
from generic.operation import Operation
from generic.store import Request

__all__ = ["Reporter", "codes", "describe"]

logger = logging.getLogger(__name__)

_EXPECTED = (ActuatorError, ApiError, Cancelled, DecodeError)
"""What somebody raised on purpose; anything else is a bug, and counted as one."""


def describe(error: BaseException) -> str:
    """One line about an error, for people; the class is named where the text alone says little."""
    text = " ".join(str(error).split())
    if isinstance(error, DecodeError):
        return f"the object cannot be read: {text}"
    if isinstance(error, _EXPECTED) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def codes(error: BaseException) -> tuple[ErrorCode, ...]:
    """Gardener's codes for an error: those it carries; an unreadable object is configuration."""
    if isinstance(error, DecodeError):
        return (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    return codes_of(error)


@attrs.frozen
class Reporter:
    """Reports on one object; made for each request, it knows what all lines have in common."""

    kind: Kind
    request: Request
    uid: str
    events: EventRecorder
    metrics: ControllerMetrics

    @property
    def log(self) -> logs.Log:
        """A logger whose lines name the object."""
        return logs.bind(logger, kind=self.kind.name, object=str(self.request), uid=self.uid)

    @property
    def about(self) -> About:
        """The object as events refer to it."""
        return About(
            api_version=self.kind.api_version,
            kind=self.kind.name,
            namespace=self.request.namespace,
            name=self.request.name,
            uid=self.uid,
        )

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """An event, best effort."""
        self.events.record(self.about, reason, message, warning=warning)

    def failed(self, operation: Operation, error: BaseException) -> None:
        """An operation failed and will be tried again."""
        expected = isinstance(error, _EXPECTED)
        text = describe(error)
        fields = {"operation": operation.value, "error": text, "codes": codes(error)}
        self.log.error("failed", extra={"fields": fields}, exc_info=None if expected else error)
        self.event(f"{operation.value.title().replace('_', '')}Error", text, warning=True)
        if operation.deletes:
            self.metrics.deletion(Outcome.FAILED)
        if isinstance(error, DeadlineExceeded):
            self.metrics.timed_out()
        elif not expected:
            self.metrics.panicked()

    def status_not_written(self, error: BaseException) -> None:
        """What went wrong could not be written into the status either."""
        fields = {"error": describe(error)}
        self.log.warning("the status could not be written", extra={"fields": fields})

    def stripped(self, one: Stripped) -> None:
        """A finalizer of somebody else came off a seed object."""
        self.metrics.stripped(one.resource)
        self.log.warning("finalizer stripped", extra={"fields": attrs.asdict(one)})
        text = f"Stripped {one.finalizer} from {one.resource} {one.name}"
        self.event("FinalizerStripped", text, warning=True)

    def left_outside(self, resource: ExternalResource) -> None:
        """Afterwards it is on record that `resource` may remain. Raises ApiError."""
        fields = {"resource": str(resource)}
        self.log.warning("left outside the seed", extra={"fields": fields})
        self.events.record_left_outside(self.about, resource)

    def released(self, outcome: Outcome) -> None:
        """Our finalizer is off."""
        self.metrics.deletion(outcome)
        self.log.info("finalizer released", extra={"fields": {"outcome": outcome.value}})

    def bad_force_value(self, value: str) -> None:
        """Somebody meant to force the deletion, and it does not count."""
        text = f"{FORCE_DELETION}: {value!r} is no boolean, so this is no force deletion"
        self.event("ForceDeletionNotUnderstood", f'{text}; set it to "true"', warning=True)
