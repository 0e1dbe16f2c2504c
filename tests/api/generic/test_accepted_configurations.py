"""A rule that is new in an upgrade stops no object whose configuration was accepted before."""

from __future__ import annotations

from collections.abc import Iterator
from types import new_class

import attrs
import pytest

from actuator import Actuator, ActuatorError, FieldProblem, ProviderConfig
from actuator.provider_config import ACCEPTED, accepted_message
from actuator.v1alpha1 import Infrastructure
from tests.support.cluster.harness import OPERATION, Script, eventually
from tests.support.objects.builders import cluster, infrastructure

CODE = ["ERR_CONFIGURATION_PROBLEM"]


@attrs.frozen(kw_only=True)
class Config(ProviderConfig):
    """A configuration of the installed version."""

    api_version: str = "mine.example.org/v1"
    kind: str = "Config"
    size: int = 1


class Stricter(Config):
    """The same after an upgrade."""

    def problems(self) -> Iterator[FieldProblem]:
        if self.size > 5:
            yield FieldProblem(field="size", detail="must be at most 5")


INSTALLED = Actuator[Infrastructure, Config]
UPGRADED = Actuator[Infrastructure, Stricter]
WITHOUT = Actuator[Infrastructure, None]
"""Base classes, by the configurations that they declare."""


def configured(base: object, **on) -> Script:
    """An actuator with the class of configurations of the base class."""
    return new_class("Made", (Configured, base))(**on)


class Configured(Script):
    """Reads its configuration in each operation."""

    def _run(self, operation, ctx, obj, cluster):
        assert ctx.config is ctx.config
        return super()._run(operation, ctx, obj, cluster)


@pytest.fixture
def create(seed, namespace):
    def create(size: int, **more):
        config = {"apiVersion": "mine.example.org/v1", "kind": "Config", "size": size}
        seed.create(infrastructure(namespace, namespace, provider_config=config, **more))

    return create


def fail(*_):
    raise ActuatorError("the cloud is away")


def error(seed) -> str:
    return (seed.status().get("lastError") or {}).get("description", "")


def conditions(seed) -> dict[str, str]:
    return {
        condition["type"]: condition["message"] for condition in seed.status().get("conditions", ())
    }


def change(seed, size: object) -> None:
    seed.patch({"spec": {"providerConfig": {"size": size}}})
    seed.ask("reconcile")


def test_an_unchanged_object_is_reconciled_and_a_changed_one_judged(seed, start, create):
    first = start(configured(INSTALLED))
    create(7)
    eventually(seed.is_ready)
    assert conditions(seed) == {}
    first.stop()
    start(configured(UPGRADED))
    seed.ask("reconcile")
    eventually(lambda: seed.last_operation() == ("Reconcile", "Succeeded") and seed.is_ready())
    change(seed, 8)
    eventually(lambda: "size: must be at most 5" in error(seed))
    assert seed.status()["lastError"]["codes"] == CODE
    seed.ask("reconcile")  # it was never accepted, so that it is judged again
    eventually(lambda: OPERATION not in seed.get()["metadata"].get("annotations", {}))
    change(seed, 4)
    eventually(seed.is_ready)
    change(seed, "four")
    eventually(lambda: "size: expected an integer" in error(seed))


def test_an_acceptance_survives_errors_and_restarts(seed, start, create):
    first = start(configured(INSTALLED))
    create(7)
    eventually(seed.is_ready)
    first.stop()
    failing = start(configured(INSTALLED, reconcile=fail))
    seed.ask("reconcile")
    eventually(lambda: "the cloud is away" in error(seed))
    generation = seed.get()["metadata"]["generation"]
    assert conditions(seed) == {ACCEPTED: accepted_message(generation)}
    failing.stop()
    manager = start(configured(UPGRADED, reconcile=fail))
    seed.delete_cluster()  # an error before the actuator is called
    seed.ask("reconcile")
    eventually(lambda: "Cluster" in error(seed))
    manager.stop()
    start(configured(UPGRADED))
    seed.create(cluster(seed.namespace))
    eventually(seed.is_ready)


def test_an_error_before_the_first_validation_accepts_nothing(seed, start, create):
    start(configured(UPGRADED))
    seed.delete_cluster()
    create(7)
    eventually(lambda: "Cluster" in error(seed))
    seed.create(cluster(seed.namespace))
    eventually(lambda: "size: must be at most 5" in error(seed))
    assert ACCEPTED not in conditions(seed)


def test_a_restored_object_is_not_judged_and_no_rule_stops_a_deletion(seed, start, create):
    start(configured(UPGRADED))
    create(7, annotations={OPERATION: "restore"})
    eventually(lambda: seed.last_operation() == ("Restore", "Succeeded"))
    change(seed, 8)
    eventually(lambda: "size: must be at most 5" in error(seed))
    seed.delete()
    eventually(seed.is_gone)


def test_an_actuator_without_configuration_refuses_one_except_where_it_was_accepted(
    seed, start, create
):
    first = start(configured(INSTALLED))
    create(7)
    eventually(seed.is_ready)
    first.stop()
    second = start(configured(WITHOUT, reconcile=fail))
    seed.ask("reconcile")
    eventually(lambda: "the cloud is away" in error(seed))
    second.stop()
    start(configured(WITHOUT))
    seed.ask("reconcile")
    eventually(seed.is_ready)
    change(seed, 8)
    text = "infra: spec.providerConfig: there is nothing to configure; remove it"
    eventually(lambda: text in error(seed))
    assert f"Infrastructure {seed.namespace}/infra: spec.providerConfig" in error(seed)
    assert seed.status()["lastError"]["codes"] == CODE
    seed.delete()
    eventually(seed.is_gone)


def test_only_a_deletion_that_uses_a_broken_configuration_needs_it(seed, start, create):
    first = start(configured(INSTALLED))
    create(7)
    eventually(seed.is_ready)
    first.stop()
    seed.patch({"spec": {"providerConfig": {"size": "seven"}}})
    uses = start(configured(INSTALLED))
    seed.delete()
    eventually(lambda: "size: expected an integer" in error(seed))
    assert f"Infrastructure {seed.namespace}/infra: spec.providerConfig" in error(seed)
    uses.stop()
    start(Script())
    eventually(seed.is_gone)
