"""The budget holds for each of many objects, whatever the actuator does for all of them at once."""

import time

import pytest

from actuator import ActuatorError, ExternalResource
from generic.reconciler.invoker import RESOURCES_SECONDS
from tests.support.cluster.harness import Script, eventually
from tests.support.objects.builders import cluster, infrastructure

MANY = 40
WORKERS = 5
BUDGET = 2.0
SLACK = 5.0
"""Seconds for all requests: one after the other, the calls of external_resources take 13 s."""


class Slow(Script):
    """Reports its resources only after `waits`."""

    def __init__(self, waits, **on):
        super().__init__(**on)
        self.waits = waits

    def external_resources(self, obj):
        self.waits()
        yield ExternalResource(type="VPC", id=f"vpc-{obj.metadata.name}")


def fails(*_):
    raise ActuatorError("the cloud says no")


@pytest.mark.parametrize("hangs", ["external_resources", "both", "neither"])
def test_each_of_many_objects_is_released_at_the_end_of_its_budget(seed, start, gate, hangs):
    def wait(*_):
        gate.wait(60)

    def almost_too_long():
        time.sleep(RESOURCES_SECONDS - 0.1)

    waits = almost_too_long if hangs == "neither" else wait
    actuator = Slow(waits, force_delete=wait if hangs == "both" else fails, delete=fails)
    start(actuator, force_delete_budget=BUDGET, workers={"infrastructure": WORKERS})
    names = [f"infra-{number}" for number in range(MANY)]
    for name in names:
        seed.create(infrastructure(seed.namespace, seed.namespace, name))
    eventually(lambda: all(seed.is_ready(name) for name in names))
    for name in names:
        seed.delete(name)
    began = time.monotonic()
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(lambda: not seed.client.list(seed.resource, seed.namespace))
    assert time.monotonic() - began < BUDGET + RESOURCES_SECONDS + SLACK
