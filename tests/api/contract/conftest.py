"""A seed to look at for objects of any kind."""

from contextlib import suppress

import pytest

from actuator.errors import NotFound
from tests.support.cluster.harness import Seed


@pytest.fixture
def of(seed):
    """The seed, for an object of another kind; cluster-scoped objects are deleted afterwards."""
    made = []

    def looking_at(cls, name="infra") -> Seed:
        found = seed.of(cls, name)
        made.append(found)
        return found

    yield looking_at
    for item in made:
        if item.kind.namespaced:
            continue
        item.delete()
        with suppress(NotFound):
            item.patch({"metadata": {"finalizers": None}})
