"""The driver of soak and adversary: a manager under its Role, in a process that is measured.

Each has its own subject (the program of the manager), objects, and rules.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from actuator.cluster import Cluster
from actuator.errors import ActuatorError
from actuator.meta import Object
from generic.kube.client import HttpClient, connect
from generic.manager.manager import Manager
from generic.reconciler.orphans import RECORD_KINDS
from generic.testing.drill.judge import Finding
from generic.testing.drill.names import Names
from generic.testing.drill.seeds import EmbeddedSeed
from generic.testing.envtest import Environment
from generic.testing.seed import install_crds
from generic.tools.cli.terminal import show_rules
from generic.tools.packaging.chart import MALLOC

_WORKING = "working"
_CRASHED = ("Traceback (most recent call last)", "Exception in thread")


def say(text: str) -> None:
    """Print without buffering."""
    print(text, flush=True)


def parser(module: str, does: str) -> ArgumentParser:
    """Return a parser that has `--seed`."""
    found = ArgumentParser(prog=f"python -m {module}", description=does)
    found.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    return found


def admitted(
    environment: Environment,
    classes: Sequence[type[Object]],
    model: Manager,
    names: Names,
    connections: int,
) -> tuple[HttpClient, Path]:
    """Install the kinds, and the permissions that the model needs.

    Returns an administrator's client, and the kubeconfig of the manager.
    """
    admin = connect(environment.kubeconfig, connections=connections)
    install_crds(admin, [Cluster, *RECORD_KINDS, *classes])
    return admin, EmbeddedSeed(environment, admin).admit(model, names.type)


@contextmanager
def started(log: Path, module: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a subject in a separate process, started when entered; kill it at the end."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    pipe = subprocess.PIPE  # as the chart sets it
    environment = {**os.environ, **MALLOC}
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, text=True, env=environment
        ) as process,
    ):
        try:
            if process.stdout is None or process.stdout.readline() != f"{_WORKING}\n":
                raise ActuatorError(f"the manager did not start; see {log}")
            yield process
        finally:
            process.kill()


@contextmanager
def serving(manager: Manager) -> Iterator[Any]:
    """Run the manager of a subject; yield standard input, whose end ends it."""
    manager.start()
    if not manager.wait_synced():
        raise SystemExit("the caches are not filled")
    print(_WORKING, flush=True)
    yield sys.stdin
    sys.stdin.read()


def crashes(log: Path) -> list[str]:
    """Return the first lines of tracebacks that no logger wrote."""
    lines = log.read_text(errors="replace").splitlines()
    return [line for line in lines if line.startswith(_CRASHED)]


def hold(findings: Sequence[Finding]) -> bool:
    """Print the findings; return whether all rules hold."""
    show_rules(findings, shown=10)
    return all(finding.holds for finding in findings)
