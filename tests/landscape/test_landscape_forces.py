"""A force deletion that gardener-apiserver refuses: the extensions are down.

There is no error code for which a user is responsible, so an operator has to repair them before
the Shoot can end. The test takes about 11 minutes on a quiet machine of two cores.
"""

from __future__ import annotations

import attrs
import pytest

from generic.testing.drill.landscape.extensionsdown import SCENARIO
from generic.testing.drill.landscape.rules import judge
from generic.testing.drill.landscape.run import LandscapeRun
from generic.testing.drill.settings import Settings, Watcher

pytest_plugins = ["generic.tools.landscape_fixtures"]
pytestmark = pytest.mark.timeout(1800)


class Printer(Watcher):
    def say(self, text):
        print(text)


def test_while_extensions_are_down_a_force_is_refused_and_they_have_to_be_repaired(landscape):
    settings = attrs.evolve(Settings(), scenario=SCENARIO, shoots=1)
    run = LandscapeRun(settings, landscape.rehearsal, landscape, Printer(), "down")
    run.rehearse()
    assert [finding for finding in judge(run.evidence) if not finding.holds] == []
    (shoot,) = run.evidence.shoots
    (repair,) = run.evidence.repairs
    assert repair.startswith("The extensions had to be repaired: down1 ")
    assert "does not contain one of these error codes" in shoot.answers[1].refusal
