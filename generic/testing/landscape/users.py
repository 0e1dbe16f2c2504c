"""Users: what the owner of a Shoot sees and does in the garden.

Sources: Gardener documentation, "Shoot Status", "Shoot Operations", "Shoot Force Deletion" and
"Shoot Hibernation". Not here: the operator's view, which is in the seed.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from attrs import frozen

from actuator.cluster import FORCE_DELETION
from actuator.errors import Forbidden, Invalid, NotFound, Unavailable
from actuator.interface import Client
from actuator.meta import Raw
from generic.controller.predicates import OPERATION
from generic.kube.deleting import CONFIRM_DELETION
from generic.testing.landscape.garden import SHOOTS
from generic.testing.landscape.offers import NAMESPACE
from generic.testing.polling import wait_while

AWAY_SECONDS = 30.0
_POLL_SECONDS = 0.5
_CHECK_SECONDS = 120.0


@frozen(kw_only=True)
class ShootView:
    """The status of a Shoot as its owner sees it."""

    technical_id: str
    operation: str
    """The type of the last operation: Create, Reconcile, Delete and so on; "" before the first."""
    state: str
    progress: int
    """In percent."""
    description: str
    errors: tuple[str, ...]
    codes: tuple[str, ...]
    """The codes of all errors, each once."""
    generation_seen: bool
    """Whether gardenlet has seen the newest spec."""
    deleting: bool
    seed: str = ""
    """The Seed that is responsible for the Shoot; "" before the first."""

    def has_ended(self, state: str) -> bool:
        """Whether the last operation ended with this state, for the newest spec."""
        return self.state == state and self.generation_seen

    def __str__(self) -> str:
        if not self.operation:
            return "waiting for gardenlet"
        what = f"{self.state} {self.progress} %: {first_task(self.description)}"
        codes = f"\n  {', '.join(self.codes)}" if self.codes else ""
        return f"{self.operation} {what}{codes}" + "".join(f"\n  {error}" for error in self.errors)


def first_task(description: str) -> str:
    """Shorten the description of an operation, which lists all tasks that run at the moment."""
    first, *others = description.split(", ")
    return f"{first} and {len(others)} more" if others else first


def view_of(shoot: Raw) -> ShootView:
    """Return the view of a Shoot."""
    status = shoot.get("status") or {}
    meta = shoot["metadata"]
    operation = status.get("lastOperation") or {}
    errors = status.get("lastErrors") or []
    codes = [code for error in errors for code in error.get("codes") or ()]
    return ShootView(
        technical_id=status.get("technicalID", ""),
        operation=operation.get("type", ""),
        state=operation.get("state", ""),
        progress=operation.get("progress", 0),
        description=operation.get("description", ""),
        errors=tuple(error.get("description", "") for error in errors),
        codes=tuple(dict.fromkeys(codes)),
        generation_seen=status.get("observedGeneration") == meta.get("generation"),
        deleting="deletionTimestamp" in meta,
        seed=status.get("seedName", ""),
    )


@frozen
class ShootOwner:
    """Acts on one Shoot; `client` is for the garden."""

    client: Client
    name: str
    namespace: str = NAMESPACE

    def view(self) -> ShootView | None:
        """Return the view of the Shoot, or None if it does not exist. Raises ApiError."""
        with suppress(NotFound):
            return view_of(self.client.get(SHOOTS, self.name, self.namespace))
        return None

    def create(self, shoot: Raw) -> None:
        """Create the Shoot, with sorted keys. Raises ApiError, with gardener-apiserver's reason.

        gardener-apiserver compares the text of provider configurations with one of sorted keys. If
        they differ, each update of the status requests an operation of the Infrastructure.
        """
        self.client.create(SHOOTS, json.loads(json.dumps(shoot, sort_keys=True)))

    def delete(self) -> None:
        """Confirm the deletion, and delete the Shoot. Raises ApiError."""
        self._annotate({CONFIRM_DELETION: "true"})
        self.client.delete(SHOOTS, self.name, self.namespace)

    def force_delete(self) -> str:
        """Set the annotation of force deletion; return gardener-apiserver's refusal, or "".

        It accepts the annotation only on a Shoot under deletion, with an error code for which its
        user is responsible. Raises ApiError.
        """
        try:
            self._annotate({FORCE_DELETION: "true"})
        except Invalid as error:
            return error.message
        return ""

    def force_delete_once_stuck(self, seconds: float, progress: Callable[[str], object]) -> str:
        """Force the deletion; if that is refused, again and again while gardenlet deletes.

        gardenlet shows no error code while it waits for the deletion of an object, ten minutes for
        an Infrastructure. Returns the last refusal, or "". Raises ApiError.
        """
        refusal = self.force_delete()
        view = self.view()
        if refusal and seconds and view and view.deleting:
            progress(f"shoot {self.name}: cannot be forced before it shows an error code; waiting")
            self.wait_until(
                lambda found: found is None or not self.force_delete(), seconds, progress
            )
            refusal = "" if self.view() is None else self.force_delete()
        return refusal

    def hibernate(self, *, enabled: bool) -> None:
        """Hibernate the Shoot, or wake it up. Raises ApiError.

        gardener-apiserver refuses it until the constraint HibernationPossible was checked for a new
        Shoot; that is waited for.
        """

        def unchecked() -> list[Forbidden]:
            try:
                self._patch({"spec": {"hibernation": {"enabled": enabled}}})
            except Forbidden as error:
                if "constraint is 'Progressing'" in error.message:
                    return [error]
                raise
            return []

        if refused := wait_while(unchecked, _CHECK_SECONDS, every=1.0):
            raise refused[0]

    def migrate(self, seed: str) -> None:
        """Move the Shoot's control plane to another Seed, as an operator. Raises ApiError.

        Source: Gardener documentation, "Control Plane Migration".
        """
        change: Raw = {"spec": {"seedName": seed}}
        self.client.patch(SHOOTS, self.name, self.namespace, change, subresource="binding")

    def request(self, operation: str) -> None:
        """Request an operation: reconcile, retry, or a rotation of credentials. Raises ApiError."""
        self._annotate({OPERATION: operation})

    def wait_until(
        self,
        reached: Callable[[ShootView | None], bool],
        seconds: float,
        progress: Callable[[str], object],
    ) -> bool:
        """Wait until the view is as wanted, for at most `seconds`; report each change of it.

        Returns whether it was reached. It ends early if the Shoot is gone, or Failed: gardenlet
        does not retry that by itself. Raises ApiError if the garden refuses to answer, or does not
        answer for AWAY_SECONDS.
        """
        said = ""
        answered = time.monotonic()
        deadline = answered + seconds
        while True:
            try:
                seen = self.view()
                answered = time.monotonic()
            except Unavailable:
                if time.monotonic() - answered > AWAY_SECONDS:
                    raise
            else:
                text = "gone" if seen is None else str(seen)
                if text != said:
                    said = text
                    progress(f"shoot {self.name}: {text}")
                if reached(seen):
                    return True
                if seen is None or seen.has_ended("Failed"):
                    return False
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)

    def _annotate(self, annotations: Mapping[str, str]) -> None:
        self._patch({"metadata": {"annotations": dict(annotations)}})

    def _patch(self, change: Raw) -> None:
        self.client.patch(SHOOTS, self.name, self.namespace, change)


def is_ready(view: ShootView | None) -> bool:
    """Whether the Shoot exists and its last operation succeeded."""
    return view is not None and view.has_ended("Succeeded")


def has_moved(seed: str) -> Callable[[ShootView | None], bool]:
    """Return the condition that a Shoot is restored in this Seed."""

    def reached(view: ShootView | None) -> bool:
        arrived = view is not None and view.seed == seed and view.operation != "Migrate"
        return arrived and is_ready(view)

    return reached


def is_gone(view: ShootView | None) -> bool:
    """Whether the Shoot does not exist any more."""
    return view is None
