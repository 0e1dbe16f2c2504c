"""Many force deletions at once, and no call into the actuator ever returns."""

import pytest

from hack.bench.hanging import measure

OBJECTS = 150
ABANDONED = 64
HELPERS = 64 + 4
"""One for each call that may hang at the end of a budget, and those that begin with the first force
deletion."""


@pytest.mark.parametrize("unresponsive", [False, True], ids=["operations", "every question"])
def test_all_objects_are_deleted_and_recorded_with_few_threads_and_little_memory(
    admin, environment, unresponsive
):
    """`make bench` measures the time: at most 30 s for 1,000."""
    figures = measure(
        environment.kubeconfig, OBJECTS, workers=20, budget=5.0, unresponsive=unresponsive
    )
    assert figures.recorded == figures.objects == OBJECTS
    assert figures.threads_more <= ABANDONED + HELPERS
    assert figures.memory_more <= 50 * 2**20
