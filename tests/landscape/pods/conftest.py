"""A cluster whose pods run as processes, for the tests of this folder in one process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.landscape.pods import Namespace, Seed


@pytest.fixture(scope="session")
def seed() -> Iterator[Seed]:
    made = Seed(Path(tempfile.mkdtemp(prefix="actuator-landscape-")))
    yield made
    made.close()


@pytest.fixture
def place(seed: Seed) -> Namespace:
    return Namespace(seed)
