"""A landscape whose extensions cannot be installed ends with the reason, and does not wait."""

import pytest

from actuator.errors import ActuatorError, NotFound
from generic.testing.drill.landscape import world
from generic.testing.drill.landscape.world import await_seed, installation_problem
from generic.testing.landscape.seed import SEEDS
from tests.support.objects.stand_ins import StandIn


def installation(**conditions):
    found = [
        {"type": type, "status": status, "message": "why"} for type, status in conditions.items()
    ]
    spec = {"registrationRef": {"name": "extension-mine"}}
    return {"spec": spec, "status": {"conditions": found}}


def seed(state, description="A, B"):
    return {
        "spec": {},
        "status": {"lastOperation": {"state": state, "description": description}},
    }


def with_backup(seed, ready):
    """The Seed with backups, whose bucket is ready, not ready, or not known yet."""
    conditions = [{"type": "BackupBucketsReady", "status": ready}] if ready else []
    return {"spec": {"backup": {}}, "status": {**seed["status"], "conditions": conditions}}


class Garden(StandIn):
    """Has a Seed whose state changes with each look, and these ControllerInstallations."""

    def __init__(self, *seeds, installations=()):
        self.seeds = list(seeds)
        self.installations = installations

    def get(self, resource, _name):
        assert resource == SEEDS
        found = self.seeds.pop(0) if len(self.seeds) > 1 else self.seeds[0]
        if found is None:
            raise NotFound(404, "not yet")
        return found

    def list(self, _resource):
        return list(self.installations)


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(world, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(world, "INSTALLATION_SECONDS", 0.05)
    monkeypatch.setattr(world, "SEED_SECONDS", 0.2)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ([], ""),
        ([{"spec": {}}], ""),
        ([installation(Valid="True", Installed="True", Healthy="False")], ""),
        ([installation(Valid="True", Installed="Unknown")], ""),
        ([installation(Installed="True"), installation(Installed="False")], "extension-mine: why"),
        ([installation(Valid="False")], "extension-mine: why"),
    ],
)
def test_only_a_condition_that_prevents_an_installation_is_a_problem(found, problem):
    assert installation_problem(found) == problem


def test_the_progress_of_a_seed_is_reported_until_it_is_ready():
    said: list[str] = []
    await_seed(
        Garden(None, seed("Processing"), seed("Processing"), seed("Succeeded")), "s", said.append
    )
    assert said == ["seed s: 0 % gardenlet has not begun", "seed s: 0 % A and 1 more"]


def test_a_seed_with_backups_is_ready_with_its_bucket():
    said: list[str] = []
    done = seed("Succeeded")
    states = (with_backup(done, ready) for ready in (None, "Unknown", "True"))
    await_seed(Garden(*states), "s", said.append)
    assert said == ["seed s: 0 % Waiting until the bucket for backups exists"]
    with pytest.raises(ActuatorError, match=r"not ready after .* Waiting until the bucket"):
        await_seed(Garden(with_backup(done, "False")), "s", print)


def test_a_problem_before_gardenlet_has_begun_is_waited_for(monkeypatch):
    """Until gardenlet has installed its CRDs, each extension has one."""
    monkeypatch.setattr(world, "INSTALLATION_SECONDS", 0.0)
    failed = [installation(Installed="False")]
    await_seed(Garden(*[{"spec": {}}] * 5, seed("Succeeded"), installations=failed), "s", print)
    with pytest.raises(ActuatorError, match="cannot be installed"):
        await_seed(Garden(*[seed("Processing")] * 5, installations=failed), "s", print)


@pytest.mark.parametrize(
    ("installations", "why"),
    [
        (
            [installation(Installed="False")],
            "an extension cannot be installed: extension-mine: why",
        ),
        ([], "Seed s is not ready after 0 s: A and 1 more"),
    ],
)
def test_a_seed_that_does_not_get_ready_is_an_error_with_the_reason(installations, why):
    with pytest.raises(ActuatorError, match=why):
        await_seed(Garden(seed("Processing"), installations=installations), "s", print)
