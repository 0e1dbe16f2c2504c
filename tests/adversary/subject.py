"""The attacked manager, a process of its own so that its memory can be measured.

    python -m tests.adversary.subject KUBECONFIG TYPE SEED FOLDER [MODULE:FUNCTION]

Prints "working" once its caches are filled, and runs until standard input ends; then its metrics
are in FOLDER. The function is called first: a test patches an old mistake back into the product.
"""

from __future__ import annotations

import importlib
import resource
import sys
from pathlib import Path

import attrs
from prometheus_client import generate_latest

from actuator.v1alpha1 import Infrastructure
from generic.library.healthchecks.model import Check, HealthChecks
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.serving import logs
from tests.adversary.inputs import CLASSES
from tests.adversary.values import BUDGET, CONDITION, Adversary
from tests.support.driver import serving

__all__ = ["manager_of"]

_TIMEOUT = 3.0
"""Seconds for any other operation."""
_MEMORY = 4 * 2**30
"""Bytes of address space: a larger allocation fails here, and not on the whole machine."""


def manager_of(type_: str, seed: int, kubeconfig: Path | None = None) -> Manager:
    """A manager without servers that serves all kinds for this type."""
    options = Options(
        kubeconfig=kubeconfig,
        metrics_bind_address="0",
        health_bind_address="0",
        force_delete_budget=BUDGET,
    )
    manager = Manager(options)
    for cls in CLASSES:
        manager.add(Adversary(cls, seed), type=type_)
    checks = [Check(CONDITION, Adversary(Infrastructure, seed).check)]
    manager.add_health_checks(
        HealthChecks(cls=Infrastructure, types=type_, checks=checks, sync_period=1.0)
    )
    return manager


def main() -> None:
    """Runs until standard input ends."""
    kubeconfig, type_, seed, folder, *plants = sys.argv[1:]
    for module, _, function in (plant.partition(":") for plant in plants):
        getattr(importlib.import_module(module), function)()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    logs.configure("info", "json")
    for cls in CLASSES:  # of this process alone
        cls.KIND = attrs.evolve(cls.KIND, timeout=_TIMEOUT)
    manager = manager_of(type_, int(seed), Path(kubeconfig))
    with serving(manager):
        pass
    Path(folder, "metrics").write_bytes(generate_latest(manager.metrics.registry))
    manager.stop()


if __name__ == "__main__":
    main()
