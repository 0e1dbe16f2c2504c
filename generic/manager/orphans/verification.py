"""Verifies Orphans: asks the actuator whether the resource exists, and records the answer.

An answer is recorded with its time. Without an answer, or after an error, the previous state is
kept. An error never stops the verification of other Orphans.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import attrs

from actuator.errors import ActuatorError
from actuator.interface import Actuator, Client, Clock
from actuator.meta import format_time
from generic.kube.errorinfo import describe
from generic.manager.orphans.ledger import Serving, serving, write_status
from generic.reconciler.invoker import checked_account
from generic.reconciler.origin import UNKNOWN_VALUE, DeletionOrigin
from generic.reconciler.orphans.kind import Orphan, OrphanState, OrphanStatus
from generic.reconciler.orphans.record import NOT_STORED

FEW = 5
"""The number of missing resources that needs no confirmation."""
UNVERIFIABLE = "the extension cannot verify it (still_exists is None); look for it in the cloud"


@attrs.frozen(kw_only=True)
class Verification:
    """The state of one Orphan, and the problem of its verification, if any."""

    orphan: Orphan
    problem: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether the Orphan needs no more attention."""
        return not self.problem and not self.orphan.is_open


@attrs.frozen
class _Answer:
    orphan: Orphan
    there: bool | None = None
    problem: str = ""


def verify(
    client: Client,
    orphans: Iterable[Orphan],
    added: Sequence[Serving],
    clock: Clock,
    gone: int | None = None,
) -> Iterator[Verification]:
    """Ask about each Orphan, then record the answers; closed ones are skipped. Raises nothing.

    If none of many resources exists, the credentials may belong to another account: then nothing is
    recorded, unless `gone` is their number.
    """
    accounts = Accounts()
    answers = [_answer(orphan, added, accounts) for orphan in orphans]
    missing = sum(answer.there is False for answer in answers)
    found = any(answer.there for answer in answers)
    if missing > FEW and not found and missing != gone:
        doubt = (
            f"not recorded: all {missing} resources are missing, as with credentials of another "
            f"account; check the account, then set --gone {missing}"
        )
        answers = [
            attrs.evolve(answer, there=None, problem=answer.problem or doubt) for answer in answers
        ]
    for answer in answers:
        closed = answer.orphan.state is OrphanState.CLOSED
        yield Verification(orphan=answer.orphan) if closed else _recorded(client, answer, clock)


class Accounts:
    """The account of the credentials that each actuator verifies with, asked once."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def check(self, actuator: Actuator[Any], origin: DeletionOrigin) -> None:
        """Raise ActuatorError if the credentials belong to another account than the record's."""
        if origin.account in ("", UNKNOWN_VALUE):
            return
        if id(actuator) not in self._known:
            found: object = actuator.verifying_account()
            self._known[id(actuator)] = checked_account(actuator, "verifying_account", found)
        account = self._known[id(actuator)]
        if account and account != origin.account:
            raise ActuatorError(
                f"the resource is in account {origin.account}, and your credentials belong to "
                f"account {account}; use credentials of account {origin.account}"
            )


def _answer(orphan: Orphan, added: Sequence[Serving], accounts: Accounts) -> _Answer:
    if orphan.state is OrphanState.CLOSED:
        return _Answer(orphan)
    try:
        there = _ask(orphan, added, accounts)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also unexpected errors of an author
        return _Answer(orphan, problem=describe(error))
    problem = UNVERIFIABLE if there is None else ""
    return _Answer(orphan, there, problem)


def _recorded(client: Client, answer: _Answer, clock: Clock) -> Verification:
    orphan = answer.orphan
    problem = answer.problem
    status = _status(orphan.status, answer.there, clock.now())
    try:
        if status != orphan.status:
            write_status(client, orphan, status)
    except Exception as error:
        return Verification(orphan=orphan, problem=problem or describe(error))
    return Verification(orphan=attrs.evolve(orphan, status=status), problem=problem)


def _ask(orphan: Orphan, added: Sequence[Serving], accounts: Accounts) -> bool | None:
    """Whether it exists. Raises ActuatorError without an actuator, or the actuator's error."""
    former = orphan.spec.object
    if NOT_STORED in orphan.spec.message:
        raise ActuatorError(
            "fields of this Orphan were not stored; look for the resource in its message, close it"
        )
    found = serving(added, former)
    if found is None:
        what = f"{former.kind} of type {former.type}" if former.type else former.kind
        raise ActuatorError(
            f"no actuator of this extension serves {what}; set the extension that does"
        )
    accounts.check(found.actuator, former.origin)
    there: object = found.actuator.still_exists(orphan.spec.resource)
    if there is None or isinstance(there, bool):
        return there
    raise ActuatorError(
        f"still_exists returned {type(there).__name__}; expected True, False or None"
    )


def _status(known: OrphanStatus, there: bool | None, now: datetime) -> OrphanStatus:
    if there is None:
        return attrs.evolve(known, state=known.state or OrphanState.UNVERIFIED.value)
    state = OrphanState.EXISTS if there else OrphanState.GONE
    return attrs.evolve(known, state=state.value, verified_at=format_time(now))
