"""A seed to look at for objects of any kind."""

import pytest
from harness import Seed


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
        if not one.kind.namespaced and not one.is_gone():
            one.delete()
            one.patch({"metadata": {"finalizers": None}})
