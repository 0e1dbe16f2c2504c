"""A control plane moves between two seeds of a real Gardener, and its shoot lives on.

Faked: snapshots of etcd; at the migration, etcd's data moves as a whole (snapshots.py).
"""

import pytest

from generic.kube.client import connect
from generic.kube.clusters import NAMESPACES
from generic.library.programs.processes import Processes
from generic.reconciler.orphans import ORPHANS
from generic.testing.landscape.users import has_moved, is_gone, is_ready
from generic.tools.cli.landscape_extensions import DEFAULTS, landscape_world, rehearsal_of

SECONDS = 900.0
"""Maximum time for a phase on a busy machine."""


@pytest.fixture
def two_seeds():
    with landscape_world(DEFAULTS, rehearsal_of(DEFAULTS), 2, print) as world:
        yield world


def namespaces(seed):
    return [obj["metadata"]["name"] for obj in seed.client.list(NAMESPACES)]


def programs(processes: Processes, technical_id, seed):
    """The programs of a shoot whose names tell the seed: its etcd."""
    return [name for name in processes.alive() if technical_id in name and name.endswith(seed)]


def shoot_client(seed, technical_id):
    return connect(seed.shoots.access(technical_id).kubeconfig())


def outside_of(world, technical_id):
    everything = world.rehearsal.remaining_resources()
    return {str(resource) for resource in everything if technical_id in str(resource.tags)}


def test_a_shoot_moves_to_another_seed_and_is_deleted_there(two_seeds):
    seeds = {seed.plan.name: seed for seed in two_seeds.landscape.seeds}
    owner = two_seeds.owner("mover")
    processes = two_seeds.landscape.processes
    owner.create(two_seeds.installed.offer.shoot("mover"))
    assert owner.wait_until(is_ready, SECONDS, print)
    view = owner.view()
    source = seeds.pop(view.seed)
    technical_id = view.technical_id
    (destination,) = seeds.values()
    before = outside_of(two_seeds, technical_id)
    assert before, "the rehearsed cloud has resources of the shoot"
    marker = {"metadata": {"labels": {"kept": "yes"}}}
    shoot_client(source, technical_id).patch(NAMESPACES, "default", "", marker)

    owner.migrate(destination.plan.name)
    assert owner.wait_until(has_moved(destination.plan.name), SECONDS, print), owner.view()

    assert technical_id not in namespaces(source)
    assert programs(processes, technical_id, source.plan.name) == []
    assert programs(processes, technical_id, destination.plan.name) != []
    kept = shoot_client(destination, technical_id).get(NAMESPACES, "default")
    assert kept["metadata"]["labels"]["kept"] == "yes", "the data of etcd came with it"
    assert outside_of(two_seeds, technical_id) == before, "no resource was created again or lost"
    assert [*source.client.list(ORPHANS), *destination.client.list(ORPHANS)] == []

    owner.delete()
    assert owner.wait_until(is_gone, SECONDS, print), owner.view()
    assert technical_id not in namespaces(destination)
    assert outside_of(two_seeds, technical_id) == set()
