"""Unit tests have no cluster: a request for one, by any fixture, fails."""

from typing import NoReturn

import pytest


@pytest.fixture(scope="session")
def environment() -> NoReturn:
    """In place of the embedded cluster, which all fixtures of the API server ask for."""
    pytest.fail("a test in tests/unit has no cluster; tests/api is for those that need one")
