"""The status that simulated operators and nodes write: complete, and written once."""

import pytest

from actuator.meta import parse_time
from generic.testing.landscape.nodes import is_ready, node_status, pod_status
from generic.testing.landscape.operators import (
    ADDRESS,
    copied_backups,
    etcd,
    load_balancer,
    monitoring,
)

NOW = "2026-01-01T00:00:00Z"


def obj(generation=1, **parts):
    return {"metadata": {"name": "a", "namespace": "n", "generation": generation}, **parts}


@pytest.mark.parametrize(
    ("status", "made"),
    [
        (etcd, obj(spec={"replicas": 3})),
        (copied_backups, obj(spec={})),
        (monitoring, obj(spec={})),
        (load_balancer, obj(spec={"type": "LoadBalancer"})),
    ],
)
def test_a_status_is_written_once(status, made):
    written = status(made, NOW)
    assert written is not None
    assert status({**made, "status": written}, "2027-01-01T00:00:00Z") is None


@pytest.mark.parametrize("status", [etcd, monitoring])
def test_a_changed_spec_is_reported_again(status):
    first = status(obj(spec={"replicas": 1}), NOW)
    second = status(obj(2, spec={"replicas": 3}, status=first), NOW)
    assert second is not None
    assert second["replicas"] == 3


def test_an_etcd_that_is_not_ready_any_more_is_made_ready():
    known = {**(etcd(obj(spec={}), NOW) or {}), "ready": False}
    assert etcd(obj(spec={}, status=known), NOW) is not None


def test_only_load_balancers_get_an_address():
    assert load_balancer(obj(spec={"type": "ClusterIP"}), NOW) is None
    assert load_balancer(obj(spec={"type": "LoadBalancer"}), NOW) == {
        "loadBalancer": {"ingress": [{"ip": ADDRESS}]}
    }


def test_a_node_and_a_pod_are_ready():
    node = node_status(1234, "v1.36.3", NOW)
    assert node["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 1234
    healthy = dict.fromkeys(("DiskPressure", "MemoryPressure", "PIDPressure"), "False")
    states = {condition["type"]: condition["status"] for condition in node["conditions"]}
    assert states == healthy | {"Ready": "True"}
    pod = pod_status({"spec": {"containers": [{"name": "c", "image": "i"}]}}, parse_time(NOW))
    assert pod["containerStatuses"][0]["ready"]
    assert {condition["status"] for condition in pod["conditions"]} == {"True"}
    assert is_ready({"status": node})
    assert is_ready({"status": pod})


@pytest.mark.parametrize("status", ["False", "Unknown", None])
def test_an_object_marked_as_not_ready_is_reported_again(status):
    conditions = [{"type": "Ready", "status": status}] if status else []
    assert not is_ready({"status": {"conditions": conditions}})
    assert not is_ready({})
