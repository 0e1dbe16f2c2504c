"""A garden for all tests of a real Gardener in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from generic.library.programs.processes import Processes
from generic.testing.landscape.garden import Garden, running_garden


@pytest.fixture(scope="session")
def garden() -> Iterator[Garden]:
    with (
        closing(Processes(Path(tempfile.mkdtemp(prefix="actuator-landscape-")))) as processes,
        running_garden(processes, print) as running,
    ):
        yield running
