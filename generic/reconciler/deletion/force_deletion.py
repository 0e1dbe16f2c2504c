"""ForceDeletion: a force deletion within its budget, with remaining resources recorded.

Within the budget the actuator's force_delete is retried; at its end, or with too many abandoned
calls, a last pass skips the actuator: it strips declared seed objects and records the resources
that may remain; then `reconciler` releases the object. Only six things may exceed the budget: an
unavailable API server, a webhook that denies, an Orphan that cannot be written, thousands of them,
a CRD that refuses every patch of the object, and a namespace that was removed although it has
objects.

Guarantee: when `run` returns, the API server has acknowledged every Orphan, and the record of the
force deletion; a record that could not be written within the budget (without one: 90 seconds after
the first failure) is in the log instead.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actuator.cluster import Cluster
from actuator.errors import ActuatorError, ApiError, CallAbandoned, DecodeError, LeaseLost
from actuator.interface import Actuator, ExternalResource, SeedObjects
from actuator.meta import Object
from actuator.tolerance import WrongField
from generic.kube.errorinfo import describe
from generic.reconciler.attempt import Attempt
from generic.reconciler.budget import Budget
from generic.reconciler.deletion.evidence import leave_record, not_written
from generic.reconciler.invoker import RESOURCES_SECONDS, ActuatorCall, CallFailed, Invoker
from generic.reconciler.operation import Operation
from generic.reconciler.orphans import UNKNOWN, Orphan, OrphanReason, record_all
from generic.reconciler.orphans.forced import Ended
from generic.reconciler.orphans.probe import refused
from generic.reconciler.reporter import Reporter
from generic.reconciler.stripping import SeedObjectsHeld
from generic.serving.metrics import Outcome

IN_SEED = "seed/"
"""Prefix of the resource type of an Orphan for a remaining seed object."""

_MAX_HELD = 100
"""Maximum number of seed objects that are recorded one by one."""
_LAST_PASS_SECONDS = 10.0
"""Seconds for stripping after the budget is exceeded."""
_MIN_SECONDS = 0.5
"""Time limit of external_resources, however long the budget has been exceeded."""


class NotRecorded(ActuatorError):
    """An Orphan or a record could not be written, so the finalizer stays."""


class ForceDeletion(Struct, frozen=True):
    """The force deletions of one controller."""

    invoker: Invoker
    cls: type[Object]
    clusters: Callable[[str], Cluster]

    def run(self, attempt: Attempt, report: Reporter) -> Outcome:
        """Force-delete; return the outcome. Raises CallFailed, NotRecorded, WorkerReplaced."""
        budget, _ = self.invoker.tracks.start_budget(attempt.track)
        _ = report.origin  # read now: the Cluster may be deleted before the object
        reason = OrphanReason.FORCED
        message = budget.last_error
        try:
            obj = attempt.open(self.cls)
            call = self._begin(attempt, budget, report)
            if isinstance(call, ActuatorCall):
                cluster = self.clusters(attempt.request.namespace)
                self.invoker.invoke(call, attempt.track, obj, cluster, attempt.capture)
            else:
                reason = call
            if not self._is_default:  # the actuator may have changed the object
                obj = attempt.open(self.cls)
            remaining = self._remaining(attempt, budget, report, obj)
        except DecodeError as error:  # metadata is enough to strip and to record
            message = describe(error)
            reason = _unreadable(message, report)
            remaining = [UNKNOWN]
        except CallFailed as failure:
            if not failure.error.is_a(WrongField):
                raise
            message = failure.error.text
            reason = _unreadable(message, report)
            remaining = self._remaining(attempt, budget, report, attempt.open(self.cls))
        if reason is not OrphanReason.FORCED:
            remaining = [*(remaining or [UNKNOWN]), *self._strip(attempt, report)]
        orphans = self._record(remaining, reason, message, report)
        outcome = Outcome.ORPHANED if orphans else Outcome.FORCE_DELETED
        budget = attempt.track.budget or budget  # None: the DELETED event came first
        self._leave_record(attempt, budget, report, reason, orphans)
        return outcome

    def _begin(
        self, attempt: Attempt, budget: Budget, report: Reporter
    ) -> ActuatorCall | OrphanReason:
        """Return the call of the actuator, or the reason for skipping it."""
        left = budget.remaining(self.invoker.clock.monotonic())
        if left <= 0:
            self.invoker.tracks.end_budget(attempt.track)  # maybe before the watchdog's tick
            report.outcomes.error("force-delete budget exceeded: skipping force_delete")
            return OrphanReason.BUDGET
        seconds = min(self.invoker.kind.timeout, left)
        call = ActuatorCall(self.invoker, Operation.FORCE_DELETE, report, attempt.save, seconds)
        if not self.invoker.tracks.begin_reserved(attempt.track, call):
            report.outcomes.error("too many abandoned calls: skipping force_delete")
            return OrphanReason.HANGING
        return call

    @property
    def _is_default(self) -> bool:
        """Whether force_delete is the default one, which leaves the object unchanged."""
        actuator = self.invoker.actuator
        is_inherited = type(actuator).force_delete is Actuator.force_delete
        return is_inherited and "force_delete" not in vars(actuator)

    def _remaining(
        self, attempt: Attempt, budget: Budget, report: Reporter, obj: Any
    ) -> list[ExternalResource]:
        """Ask the actuator; its time limit ends at most RESOURCES_SECONDS after the budget."""
        if budget.unresponsive:
            return [UNKNOWN]
        left = budget.remaining(self.invoker.clock.monotonic() - RESOURCES_SECONDS)
        seconds = max(_MIN_SECONDS, min(left, RESOURCES_SECONDS))
        tracks = self.invoker.tracks
        track = attempt.track
        tracks.note_force_deletion(  # unless it returns
            track, lambda budget: replace(budget, unresponsive=True)
        )
        remaining = self.invoker.external_resources(report, track, obj, seconds)
        tracks.note_force_deletion(track, lambda budget: replace(budget, unresponsive=False))
        return remaining

    def _strip(self, attempt: Attempt, report: Reporter) -> list[ExternalResource]:
        """Strip declared seed objects; return those that remain in the seed."""
        groups: Sequence[SeedObjects] = ()
        call = ActuatorCall(
            self.invoker, Operation.FORCE_DELETE, report, attempt.save, _LAST_PASS_SECONDS
        )
        try:
            groups = self.invoker.actuator.seed_objects
            call.delete_seed_objects(groups)
        except SeedObjectsHeld as error:
            held = [_in_seed(item.resource, item.name) for item in error.held[:_MAX_HELD]]
            return held if len(held) == len(error.held) else [*held, UNKNOWN]
        except (LeaseLost, CallAbandoned):
            raise
        except Exception as error:  # also declared objects that cannot be listed
            report.log.error(
                "stripping seed objects failed", extra={"fields": {"error": describe(error)}}
            )
            return [_in_seed(str(group.resource)) for group in groups] or [UNKNOWN]
        return []

    def _record(
        self, left: list[ExternalResource], reason: OrphanReason, known: str, report: Reporter
    ) -> tuple[Orphan, ...]:
        """Record each resource, with the known error that kept the actuator from removing it.

        Raises NotRecorded.
        """
        message = known if reason is not OrphanReason.FORCED else ""
        client = self.invoker.client
        now = self.invoker.clock.now()
        try:
            orphans = record_all(client, report.orphaned_from, left, reason, message, now)
        except ApiError as error:
            raise NotRecorded(
                f"cannot record remaining resources as Orphans: {refused(error)}"
            ) from error
        if left:
            report.orphans_recorded(left)
        return orphans

    def _leave_record(
        self,
        attempt: Attempt,
        budget: Budget,
        report: Reporter,
        reason: OrphanReason,
        orphans: tuple[Orphan, ...],
    ) -> None:
        """Leave a record of this force deletion. Raises NotRecorded if it is to be tried again."""
        clock = self.invoker.clock
        left = budget.remaining_for_record(clock.monotonic())
        ended = Ended(
            reason=reason,
            deletion_requested_at=attempt.start.deletion_timestamp,
            orphans=orphans,
        )
        try:
            leave_record(self.invoker, budget, report, ended, max(_MIN_SECONDS, left), left > 0)
        except ApiError as error:
            failed_at = clock.monotonic()
            self.invoker.tracks.note_force_deletion(
                attempt.track, lambda budget: budget.with_failed_record(failed_at)
            )
            raise NotRecorded(not_written(error)) from error


def _unreadable(error: str, report: Reporter) -> OrphanReason:
    text = "cannot read the object: skipping force_delete"
    report.outcomes.error(text, extra={"fields": {"error": error}})
    return OrphanReason.UNREADABLE


def _in_seed(resource: str, name: str = "") -> ExternalResource:
    return ExternalResource(type=f"{IN_SEED}{resource}", id=name)
