"""A drill of a small rehearsal: its reference, the options for a seed, the rules in its report."""

from __future__ import annotations

import yaml

from actuator.meta import Raw
from generic.testing.envtest import Environment

NETWORK = "tests.support.drills.moving_rehearsal:OneNetwork"


def broken_rules(report: Raw) -> set[str]:
    """The rules with a problem."""
    return {finding["rule"] for finding in report["findings"] if finding["problems"]}


def target(environment: Environment) -> list[str]:
    """The options of a drill that name this seed."""
    context = yaml.safe_load(environment.kubeconfig.read_text())["current-context"]
    return ["--kubeconfig", str(environment.kubeconfig), "--context", context]
