"""Force deletions that gardener-apiserver refuses at first: dead clouds, extensions that are down.

Neither has an error code for which a user is responsible, so an operator has to repair something
before the Shoot can end. The tests take about 20 minutes on a quiet machine of two cores.
"""

from __future__ import annotations

import attrs
import pytest

from generic.kube.clusters import NAMESPACES
from generic.testing.drill.landscape.extensionsdown import SCENARIO
from generic.testing.drill.landscape.rules import judge
from generic.testing.drill.landscape.run import LandscapeRun
from generic.testing.drill.settings import DrillSettings, Watcher
from generic.testing.landscape.users import is_gone, is_ready
from tests.support.cluster.harness import eventually
from tests.support.landscape.shoots import InSeed, exists

pytest_plugins = ["generic.tools.landscape_fixtures"]
pytestmark = pytest.mark.timeout(1800)

DEAD = "everything-fails"
DENIED = "permission-denied"
UNAUTHORIZED = "ERR_INFRA_UNAUTHORIZED"
SECONDS = 600.0
FORCE = 300.0
"""Maximum times on a busy machine."""


class Printer(Watcher):
    def say(self, text):
        print(text)


def test_a_hibernated_shoot_is_forced_once_its_dead_cloud_refuses_it(landscape, real_shoot):
    seen = InSeed(landscape, real_shoot)
    real_shoot.hibernate(enabled=True)
    assert real_shoot.wait_until(is_ready, SECONDS, print)
    landscape.rehearsal.break_where_known(DEAD)
    real_shoot.delete()
    assert real_shoot.wait_until(lambda view: view.errors, SECONDS, print)
    assert "does not contain one of these error codes" in real_shoot.force_delete()
    landscape.rehearsal.repair_failure()
    landscape.rehearsal.break_where_known(DENIED)
    assert real_shoot.wait_until(lambda view: UNAUTHORIZED in view.codes, SECONDS, print)
    assert real_shoot.force_delete() == ""
    assert real_shoot.wait_until(is_gone, FORCE, print)
    assert {"AWS::EC2::VPC", "AWS::EC2::Subnet"} <= seen.orphans()
    assert not exists(seen.client, NAMESPACES, seen.id)
    eventually(lambda: seen.processes() == [])


def test_while_extensions_are_down_a_force_is_refused_and_they_have_to_be_repaired(landscape):
    settings = attrs.evolve(DrillSettings(), scenario=SCENARIO, shoots=1)
    run = LandscapeRun(settings, landscape.rehearsal, landscape, Printer(), "down")
    run.rehearse()
    assert [finding for finding in judge(run.evidence) if not finding.holds] == []
    (shoot,) = run.evidence.shoots
    (repair,) = run.evidence.repairs
    assert repair.startswith("The extensions had to be repaired: down1 ")
    assert "does not contain one of these error codes" in shoot.answers[1].refusal
