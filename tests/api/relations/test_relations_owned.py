"""Owned: a Team's ConfigMaps, under each propagation that a deletion may ask for."""

from __future__ import annotations

import pytest

from actuator.errors import Invalid
from extensions.relations.kinds import Team
from tests.support.cluster.harness import eventually
from tests.support.samples.relations import COLLECTED, CONFIG_MAPS, HELD, ConfigMaps, config_map


@pytest.fixture
def maps(admin, namespace) -> ConfigMaps:
    return ConfigMaps(admin, namespace)


@pytest.fixture
def team(serve, make, namespace):
    """Makes Teams, whose manager runs; their names are of this test alone."""
    serve(Team)

    def maker(name, **spec):
        made = make(Team, f"{namespace}-{name}", namespace=namespace, **spec)
        made.is_ready()
        return made

    return maker


def test_a_team_controls_its_own_config_map_and_shares_the_other(team, maps):
    blue = team("blue", settings={"colour": "blue"}, shared="everybody")
    red = team("red", shared="everybody")
    assert maps.data(f"team-{blue.name}") == {"colour": "blue"}
    assert maps.owners(f"team-{blue.name}") == {blue.name: True}
    assert maps.owners("everybody") == {blue.name: False, red.name: False}


def test_in_the_background_children_go_after_it_and_shared_ones_with_the_last(team, maps):
    blue = team("blue", shared="everybody")
    red = team("red", shared="everybody")
    blue.delete("Background")
    blue.is_gone()
    maps.goes(f"team-{blue.name}")
    eventually(lambda: maps.owners("everybody") == {red.name: False}, COLLECTED)
    red.delete("Background")
    maps.goes("everybody")


def test_in_the_foreground_it_waits_for_the_child_that_it_controls(team, maps, admin):
    blue = team("blue", shared="everybody")
    red = team("red", shared="everybody")
    maps.patch(f"team-{blue.name}", {"metadata": {"finalizers": [HELD]}})
    be_seen_by_the_collector(team, maps)
    blue.delete("Foreground")
    eventually(lambda: blue.get()["metadata"]["finalizers"] == ["foregroundDeletion"])
    eventually(lambda: deleting(admin, maps, f"team-{blue.name}"), COLLECTED)
    eventually(lambda: maps.owners("everybody") == {red.name: False}, COLLECTED)
    assert blue.get()["metadata"]["finalizers"] == ["foregroundDeletion"], "the other one blocks"
    maps.patch(f"team-{blue.name}", {"metadata": {"finalizers": None}})
    blue.is_gone()


def deleting(admin, maps, name):
    return admin.get(CONFIG_MAPS, name, maps.namespace)["metadata"].get("deletionTimestamp")


def test_orphaned_children_stay_and_forget_it(team, maps):
    blue = team("blue", settings={"colour": "blue"}, shared="everybody")
    be_seen_by_the_collector(team, maps)
    blue.delete("Orphan")
    blue.is_gone()
    assert maps.owners(f"team-{blue.name}") == maps.owners("everybody") == {}
    assert maps.data(f"team-{blue.name}") == {"colour": "blue"}


def be_seen_by_the_collector(team, maps):
    """The collector neither orphans nor releases a child seen only after its owner's deletion."""
    last = team("last", settings={"seen": "after all others"})
    last.delete("Background")
    maps.goes(f"team-{last.name}")


def test_forced_it_goes_as_well_and_the_collector_does_the_rest(team, maps):
    blue = team("blue", shared="everybody")
    blue.force()
    blue.is_gone()
    maps.goes(f"team-{blue.name}")
    maps.goes("everybody")


def test_external_changes_to_a_child_are_reverted(team, maps):
    blue = team("blue", settings={"colour": "blue"})
    maps.patch(f"team-{blue.name}", {"data": {"colour": "red"}})
    eventually(lambda: maps.data(f"team-{blue.name}") == {"colour": "blue"})
    maps.delete(f"team-{blue.name}")
    eventually(lambda: maps.data(f"team-{blue.name}") == {"colour": "blue"})


def test_a_setting_that_is_no_longer_wanted_goes(team, maps):
    blue = team("blue", settings={"colour": "blue", "motto": "none"})
    blue.change(settings={"motto": None})
    eventually(lambda: maps.data(f"team-{blue.name}") == {"colour": "blue"})


@pytest.mark.parametrize("which", ["own", "shared"])
def test_a_config_map_of_another_owner_is_not_adopted(serve, make, maps, foreign, namespace, which):
    serve(Team)
    name = f"{namespace}-blue"
    taken = {"own": f"team-{name}", "shared": "everybody"}[which]
    foreign(namespace, taken, whose="mine")
    blue = make(Team, name, namespace=namespace, shared="everybody")
    said = blue.says(f"ConfigMap {namespace}/{taken} exists and does not belong to Team {name}")
    assert said["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert maps.data(taken) == {"whose": "mine"}
    blue.delete()
    blue.is_gone()
    assert maps.owners(taken) == {}


def test_the_namespace_of_the_children_cannot_be_changed(team):
    with pytest.raises(Invalid, match="field is immutable"):
        team("blue").change(namespace="default")


def test_a_child_that_is_going_is_waited_for(serve, make, maps, admin, namespace):
    held = config_map(namespace, f"team-{namespace}-blue")
    held["metadata"]["finalizers"] = [HELD]
    admin.create(CONFIG_MAPS, held)
    maps.delete(f"team-{namespace}-blue")
    serve(Team)
    blue = make(Team, f"{namespace}-blue", namespace=namespace)
    blue.says(f"Waiting until ConfigMap team-{namespace}-blue is gone")
    maps.patch(f"team-{namespace}-blue", {"metadata": {"finalizers": None}})
    blue.is_ready()
