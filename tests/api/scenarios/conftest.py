"""Fixtures of scenario tests: managers behind a proxy, and readers of facts about an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from actuator import Actuator
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from hack.faults import FaultProxy, FaultStage, FaultyActuator
from tests.support.cluster.harness import Seed, running


class Detour:
    """A cluster whose users all go through a proxy."""

    def __init__(self, environment: Any, directory: Path, stack: ExitStack) -> None:
        self._environment = environment
        self._directory = directory
        self._stack = stack

    def user_kubeconfig(self, user: str) -> Path:
        """The way through the proxy, which the user keeps its permissions on."""
        self.role = user
        kubeconfig = self._environment.user_kubeconfig(user)
        self.proxy = self._stack.enter_context(FaultProxy(kubeconfig, self._directory))
        return self.proxy.kubeconfig


@pytest.fixture
def behind(environment, admin, namespace, tmp_path) -> Iterator[Callable[..., FaultStage]]:
    """Starts a manager behind a proxy; everything about it can be made to fail."""
    with ExitStack() as stack:

        def start(actuator: Actuator[Any], **options: Any) -> FaultStage:
            faulty = FaultyActuator(actuator)
            way = Detour(environment, tmp_path, stack)
            stack.enter_context(running(way, admin, namespace, faulty, **options))
            return FaultStage(proxy=way.proxy, actuators=[faulty], admin=admin, role=way.role)

        yield start


@pytest.fixture
def recorded(admin) -> Callable[[Seed], set[tuple[str, str, str]]]:
    """Resource type, id and reason of each Orphan of a namespace."""

    def read(seed: Seed) -> set[tuple[str, str, str]]:
        found = admin.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
        specs = [obj["spec"] for obj in found]
        return {(spec["resourceType"], spec.get("id", ""), spec["reason"]) for spec in specs}

    return read


@pytest.fixture
def blocked() -> Callable[[Seed], dict[str, Any] | None]:
    """The condition DeletionBlocked; None where there is none."""

    def read(seed: Seed, name: str = "") -> dict[str, Any] | None:
        conditions = seed.status(name).get("conditions") or []
        return next(
            (condition for condition in conditions if condition["type"] == "DeletionBlocked"), None
        )

    return read
