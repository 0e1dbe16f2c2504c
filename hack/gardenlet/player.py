"""The owners of Shoots, Bastions and buckets: what they do in the garden while it is recorded.

Each flow is played with two Shoots at the same time. One more fails, for the time after which
gardenlet shows an error.
"""

import base64
from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from actuator.interface import Client, Resource
from actuator.meta import Raw
from generic.testing.landscape.gardenobjects import CORE
from generic.testing.landscape.offers import NAMESPACE
from generic.testing.landscape.seed import SEEDS
from generic.testing.landscape.users import ShootOwner, ShootView, has_moved, is_gone, is_ready
from generic.testing.polling import wait_while
from generic.testing.rehearsal import CombinedRehearsal

_SECONDS = 900.0
_NORMAL = ["a", "b"]
_FORCIBLE = ["c", "d"]
_MIGRATING = ["m", "n"]
_FAILING = ["e"]
_BUCKET = "recorded"
RECORDED = [*(f"shoot--dev--{name}" for name in (*_NORMAL, *_FORCIBLE, *_MIGRATING)), _BUCKET]
"""The shoots whose flows are recorded, and a bucket; of the failing Shoot only errors are."""
_SCENARIO = "credentials-revoked"
_REVOKED = "ERR_INFRA_UNAUTHENTICATED"
_BASTIONS = Resource("operations.gardener.cloud/v1alpha1", "bastions")
_BUCKETS = Resource(CORE, "backupbuckets", namespaced=False)
_ENTRIES = Resource(CORE, "backupentries")
_KEY = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(32)
"""A public key in the form of SSH, of no private key."""
Reached = Callable[[ShootView | None], bool]


@frozen
class Player:
    """Acts in a garden; `shoot` returns the Shoot of a name."""

    garden: Client
    shoot: Callable[[str], Raw]
    rehearsal: CombinedRehearsal
    say: Callable[[str], None]

    def play(self) -> None:
        """Play all flows. Raises AssertionError if one does not come to its end."""
        self._begin(_NORMAL)
        self._wait("creation", _NORMAL, is_ready)
        self._create_bastions(_NORMAL)
        self._hibernate(_NORMAL, enabled=True)
        self._hibernate(_NORMAL, enabled=False)
        self._begin([*_FORCIBLE, *_MIGRATING])
        self._delete(_NORMAL)
        self._play_bucket()
        self._wait("creation", _MIGRATING, is_ready)
        self._migrate(_MIGRATING)
        self._delete(_MIGRATING)
        self._wait("creation", _FORCIBLE, is_ready)
        self._create_bastions(_FORCIBLE[:1])
        self.rehearsal.break_where_known(_SCENARIO)
        self._begin(_FAILING)
        self._force_delete(_FORCIBLE)
        self._wait("error", _FAILING, _shows_infrastructure)
        self.rehearsal.repair_failure()
        self._await("the backups of deleted shoots", self._entries)

    def _owner(self, name: str) -> ShootOwner:
        return ShootOwner(self.garden, name)

    def _begin(self, names: Iterable[str]) -> None:
        """Create Shoots, without waiting."""
        for name in names:
            self._owner(name).create(self.shoot(name))

    def _wait(self, title: str, names: Iterable[str], reached: Reached) -> None:
        """Wait until the Shoots are as wanted."""
        for name in names:
            assert self._owner(name).wait_until(reached, _SECONDS, self.say), f"{title} of {name}"

    def _await(self, title: str, left: Callable[[], Sequence[Raw]]) -> None:
        """Wait until no objects are left."""
        found = wait_while(left, _SECONDS, every=1.0)
        assert not found, f"{title}: {[item['metadata']['name'] for item in found]}"

    def _create_bastions(self, names: Iterable[str]) -> None:
        """Create a Bastion for each of these Shoots, and wait until it is ready."""
        for name in names:
            self.garden.create(_BASTIONS, _bastion(name))
        self._await("Bastions", lambda: list(filter(_is_not_ready, self.garden.list(_BASTIONS))))

    def _hibernate(self, names: Sequence[str], *, enabled: bool) -> None:
        for name in names:
            self._owner(name).hibernate(enabled=enabled)
        self._wait("hibernation" if enabled else "waking", names, is_ready)

    def _delete(self, names: Sequence[str]) -> None:
        """Delete Shoots normally; the load balancer controller is simulated."""
        for name in names:
            self._owner(name).delete()
        self._wait("deletion", names, is_gone)

    def _play_bucket(self) -> None:
        """Create and delete a bucket such as those of the seeds."""
        bucket = self.garden.list(_BUCKETS)[0]
        copied = {key: bucket[key] for key in ("apiVersion", "kind", "spec")}
        self.garden.create(_BUCKETS, {**copied, "metadata": {"name": _BUCKET}})
        self._await("bucket", lambda: list(filter(_is_unfinished, self._recorded_bucket())))
        self.garden.delete(_BUCKETS, _BUCKET)
        self._await("deletion of the bucket", self._recorded_bucket)

    def _recorded_bucket(self) -> list[Raw]:
        found = self.garden.list(_BUCKETS)
        return [obj for obj in found if obj["metadata"]["name"] == _BUCKET]

    def _migrate(self, names: Sequence[str]) -> None:
        """Move Shoots to the other seed."""
        seeds = {seed["metadata"]["name"] for seed in self.garden.list(SEEDS)}
        others = {name: (seeds - {self._seed(name)}).pop() for name in names}
        for name, seed in others.items():
            self._owner(name).migrate(seed)
        for name, seed in others.items():
            self._wait(f"migration to {seed}", [name], has_moved(seed))

    def _seed(self, name: str) -> str:
        view = self._owner(name).view()
        assert view is not None, name
        return view.seed

    def _force_delete(self, names: Sequence[str]) -> None:
        """Force deletions once the Shoots show an error of their credentials.

        The Bastion of the first one ends its deletion before that begins, so that it has to show
        the error before.
        """
        self._owner(names[0]).request("reconcile")
        self._wait("error", names[:1], _is_refused)
        for name in names:
            self._owner(name).delete()
        for name in names:
            self._wait("error", [name], _is_refused)
            refusal = self._owner(name).force_delete()
            assert not refusal, refusal
        self._wait("forced deletion", names, is_gone)

    def _entries(self) -> list[Raw]:
        """Return the BackupEntries of Shoots that are deleted."""
        kept = {*_FAILING}
        found = self.garden.list(_ENTRIES)
        return [obj for obj in found if obj["metadata"]["ownerReferences"][0]["name"] not in kept]


def _bastion(shoot: str) -> Raw:
    key = f"ssh-ed25519 {base64.b64encode(_KEY).decode()}"
    ingress = [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    return {
        "apiVersion": _BASTIONS.api_version,
        "kind": "Bastion",
        "metadata": {"name": f"into-{shoot}", "namespace": NAMESPACE},
        "spec": {"shootRef": {"name": shoot}, "sshPublicKey": key, "ingress": ingress},
    }


def _is_not_ready(bastion: Raw) -> bool:
    conditions = (bastion.get("status") or {}).get("conditions") or ()
    return not any(condition["status"] == "True" for condition in conditions)


def _is_unfinished(bucket: Raw) -> bool:
    operation = (bucket.get("status") or {}).get("lastOperation") or {}
    return operation.get("state") != "Succeeded"


def _is_refused(view: ShootView | None) -> bool:
    return view is not None and _REVOKED in view.codes


def _shows_infrastructure(view: ShootView | None) -> bool:
    return view is not None and any("Infrastructure" in error for error in view.errors)
