"""A garden for all tests of a real Gardener in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from generic.kube.clusters import NAMESPACES
from generic.library.programs.processes import Processes
from generic.testing.landscape.garden import LandscapeGarden, running_garden
from generic.testing.landscape.gardenobjects import cloud_profile, credentials, project
from tests.support.cluster.harness import eventually
from tests.support.objects.garden import PROFILE, VERSION, registration


@pytest.fixture(scope="session")
def garden() -> Iterator[LandscapeGarden]:
    with (
        closing(Processes(Path(tempfile.mkdtemp(prefix="actuator-landscape-")))) as processes,
        running_garden(processes, print) as running,
    ):
        yield running


@pytest.fixture(scope="session")
def offered(garden: LandscapeGarden) -> None:
    """All that lets a user create Shoots; no seed runs them."""
    garden.apply([registration()])
    garden.apply([project("dev"), cloud_profile("local", [VERSION], PROFILE)])
    eventually(lambda: garden.client.get(NAMESPACES, "garden-dev"))
    garden.apply(credentials("garden-dev", "local", {"token": "none"}))
