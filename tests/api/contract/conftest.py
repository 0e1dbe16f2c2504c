"""A seed to look at for objects of any kind."""

from contextlib import suppress

import pytest
from harness import Seed

from actuator.errors import NotFound


@pytest.fixture
def of(seed):
    """The seed, looked at for an object of another kind; what has no namespace goes afterwards."""
    made = []

    def looking_at(cls, name="infra") -> Seed:
        found = seed.of(cls, name)
        made.append(found)
        return found

    yield looking_at
    for one in made:
        if one.kind.namespaced:
            continue
        one.delete()
        with suppress(NotFound):
            one.patch({"metadata": {"finalizers": None}})
