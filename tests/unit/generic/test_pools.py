"""Pools without a cluster: their hashes, which have to be Gardener's own, and shares of zones."""

import hashlib
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.codec import decode
from actuator.errors import ConfigurationError, ErrorCode
from actuator.v1alpha1 import Cluster, Worker
from generic.library.worker import hash_of, in_zone, pool_hash, share_of_zone
from generic.library.worker.poolhash import in_place_hash
from generic.library.worker.quantities import total

ROTATION = {
    "certificateAuthorities": {"lastInitiationTime": "2026-01-01T00:00:00Z"},
    "serviceAccountKey": {
        "lastInitiationTime": "2026-02-01T00:00:00Z",
        "pendingWorkersRollouts": [{"name": "p", "lastInitiationTime": "2025-01-01T00:00:00Z"}],
    },
}
MOMENTS = ["2026-01-01 00:00:00 +0000 UTC", "2025-01-01 00:00:00 +0000 UTC"]


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def worker_with(given):
    meta = {"name": "worker", "namespace": "ns"}
    return decode(Worker, {"metadata": meta, "spec": {"pools": [{"name": "first"}, given]}})


PURPOSE = {"gardener.cloud/purpose": "machineclass"}
CLASS_LABELS = [
    (None, PURPOSE),
    (
        {"name": "gardenlinux", "version": "934.8.0+a.b"},
        {
            **PURPOSE,
            "operatingSystemName": "gardenlinux",
            "operatingSystemVersion": "934.8.0_a.b",
        },
    ),
    ({"name": "x" * 64, "version": "1"}, {**PURPOSE, "operatingSystemVersion": "1"}),
    ({"name": "os", "version": "1-"}, {**PURPOSE, "operatingSystemName": "os"}),
    ({"name": "", "version": ""}, PURPOSE),
]


@pytest.mark.parametrize(("image", "labels"), CLASS_LABELS)
def test_a_machine_class_has_the_labels_of_gardeners_providers(image, labels):
    """gardener-extension-provider-openstack, pkg/controller/worker/machines.go."""
    cluster = decode(Cluster, {"spec": {"shoot": {"status": {"technicalID": "t"}}}})
    worker = worker_with({"name": "p", "zones": ["a"], "machineImage": image})
    given: dict[str, Any] = {"provider": "x", "provider_spec": {}, "secret_data": {}}
    own = {"failure-domain.beta.kubernetes.io/zone": "a"}
    group = in_zone(worker, worker.spec.pools[1], cluster, 0, hash="h", **given, class_labels=own)
    assert group.machine_class("ns")["metadata"]["labels"] == {**labels, **own}


def hash_of_pool(given, shoot=None, **more):
    """The hash of the second pool of a Worker."""
    worker = worker_with(given)
    cluster = decode(Cluster, {"spec": {"shoot": shoot or {}}})
    return pool_hash(worker, worker.spec.pools[1], cluster, **more)


def in_place_hash_of(given, shoot=None):
    worker = worker_with(given)
    cluster = decode(Cluster, {"spec": {"shoot": shoot or {}}})
    return in_place_hash(worker, worker.spec.pools[1], cluster)


def rolling(**more):
    """The pool of the tests of Gardener's WorkerPoolHash."""
    return {"name": "test-worker", "nodeAgentSecretName": "sample-hash"} | more


def in_place(**more):
    """The pool of the tests of Gardener's WorkerPoolHashInPlace."""
    given = rolling(updateStrategy="AutoInPlaceUpdate", kubernetesVersion="1.2.3", kubeletConfig={})
    return given | {"machineType": "foo", "machineImage": {"name": "bar", "version": "baz"}} | more


ONCE = "2026-01-01T00:00:00Z"


def rotated(ca=ONCE, key=ONCE):
    parts = {"certificateAuthorities": ca, "serviceAccountKey": key}
    rotation = {name: {"lastInitiationTime": time} for name, time in parts.items() if time}
    return {"status": {"credentials": {"rotation": rotation}}}


def test_the_hash_of_a_rolling_pool_covers_the_node_agent_and_the_providers_data():
    """gardener, extensions/pkg/controller/worker/machines.go: WorkerPoolHash."""
    assert hash_of(["a", "b"]) == sha256(sha256("a") + sha256("b"))[:5]
    assert hash_of_pool(rolling()) == sha256(sha256("sample-hash"))[:5]
    found = hash_of_pool(rolling(), additional=["sample"], additional_in_place=["ignored"])
    assert found == sha256(sha256("sample-hash") + sha256("sample"))[:5]


ROLLING_SAME = [
    {"priority": 1337},
    {"annotations": {"foo": "bar"}},
    {"labels": {"foo": "bar"}},
    {"taints": [{"key": "foo", "effect": ""}]},
    {"name": "different-name"},
    {"zones": ["1"]},
    {"kubernetesVersion": "1.2.4"},
    {"kubernetesVersion": "1.3.3"},
    {"machineType": "small"},
]


@pytest.mark.parametrize("change", ROLLING_SAME)
def test_the_hash_of_a_rolling_pool_ignores_fields_in_the_node_agent_secret_name(change):
    """The cases of Gardener's machines_test.go, "#WorkerPoolHash"."""
    before = hash_of_pool(rolling(), additional=["sample"])
    assert hash_of_pool(rolling(**change), additional=["sample"]) == before
    assert hash_of_pool(rolling(nodeAgentSecretName="different"), additional=["sample"]) != before
    assert hash_of_pool(rolling(), additional=["test"]) != before


@pytest.mark.parametrize("strategy", ["AutoInPlaceUpdate", "ManualInPlaceUpdate"])
def test_the_hash_of_a_pool_with_in_place_updates_adds_its_in_place_hash(strategy):
    """gardener, machines.go: WorkerPoolHashInPlace."""
    given = in_place(updateStrategy=strategy)
    found = hash_of_pool(given, rotated(), additional=["ignored"], additional_in_place=["sample"])
    reached = in_place_hash_of(given, rotated())
    items = ["sample-hash", reached, "sample"]
    assert found == sha256("".join(map(sha256, items)))[:5]


IN_PLACE_SAME = [*ROLLING_SAME[:6], {"kubernetesVersion": "1.2.4"}, {"machineType": "small"}]
IN_PLACE_OTHER = [
    {"nodeAgentSecretName": "different"},
    {"machineImage": {"name": "bar", "version": "new-version"}},
    {"kubernetesVersion": "1.3.3"},
    {"kubeletConfig": {"cpuManagerPolicy": "static"}},
]


@pytest.mark.parametrize("change", IN_PLACE_SAME)
def test_the_hash_of_a_pool_with_in_place_updates_ignores_fields_that_they_keep(change):
    """The cases of Gardener's machines_test.go, "#WorkerPoolHashInPlace"."""
    assert hash_of_pool(in_place(**change), rotated()) == hash_of_pool(in_place(), rotated())


@pytest.mark.parametrize("change", IN_PLACE_OTHER)
def test_the_hash_of_a_pool_with_in_place_updates_covers_fields_that_they_change(change):
    assert hash_of_pool(in_place(**change), rotated()) != hash_of_pool(in_place(), rotated())


LATER = "2026-01-01T01:00:00Z"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rotated(), rotated(ca=LATER)),
        (rotated(ca=None), rotated()),
        (rotated(), rotated(key=LATER)),
        (rotated(key=None), rotated()),
    ],
)
def test_the_hash_of_a_pool_with_in_place_updates_changes_with_rotated_credentials(before, after):
    assert hash_of_pool(in_place(), before) != hash_of_pool(in_place(), after)
    assert hash_of_pool(rolling(), before) == hash_of_pool(rolling(), after)


def test_zones_share_a_number_and_the_first_get_the_remainder():
    assert [share_of_zone(5, index, 3, 5) for index in range(3)] == [2, 2, 1]
    assert [share_of_zone("10%", index, 2, 4) for index in range(2)] == ["10%", "10%"]
    assert [share_of_zone("25%", index, 2, 3) for index in range(2)] == ["34%", "17%"]


@pytest.mark.parametrize(
    ("percentage", "index", "zones", "total", "share"),
    [
        ("15%", 0, 2, 3, "21%"),
        ("30%", 1, 2, 3, "21%"),
        ("30%", 3, 4, 6, "21%"),
    ],
)
def test_a_share_of_a_percentage_is_rounded_as_gardeners_library_does(
    percentage, index, zones, total, share
):
    assert share_of_zone(percentage, index, zones, total) == share


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("1.31.0", "04863233bf6b9bb0"),
        ("1.32.0", "89e7871a154fd3d0"),
        ("1.33.0", "e1d8805194ff0b5e"),
    ],
)
def test_the_hash_of_an_update_in_place_is_gardeners(version, found):
    """The figures are those of Gardener's own tests of its generic Worker actuator."""
    assert in_place_hash_of({"name": "p", "kubernetesVersion": version}) == found


def test_the_hash_of_an_update_in_place_covers_the_fields_that_it_changes():
    shoot = {"status": {"credentials": {"rotation": ROTATION}}}
    kubelet = {
        "kubeReserved": {"cpu": "80m", "memory": "1Gi", "pid": "15k"},
        "systemReserved": {"cpu": "20m", "memory": "512Mi"},
        "evictionHard": {"memoryAvailable": "100Mi", "nodeFSAvailable": "5%"},
        "cpuManagerPolicy": "static",
        "maxPods": 110,
    }
    image = {"name": "os", "version": "1"}
    given = {"name": "p", "kubernetesVersion": "1.31.2", "kubeletConfig": kubelet}
    kubelet_items = ["100m-1536Mi-15k-<nil>", "--100Mi-5%-", "static"]
    expected = hash_of(["1.31", "1", *MOMENTS, *kubelet_items], 16)
    assert in_place_hash_of(given | {"machineImage": image}, shoot) == expected


def in_zone_of(given, status):
    worker = worker_with(rolling() | {"zones": ["a", "b"], "maximum": 3} | given)
    cluster = decode(Cluster, {"metadata": {"name": "c"}, "spec": {"shoot": {"status": status}}})
    return in_zone(
        worker,
        worker.spec.pools[1],
        cluster,
        0,
        hash="12345",
        provider="test",
        provider_spec={},
        secret_data={},
    )


TECHNICAL_ID = {"technicalID": "shoot--a--b"}


def test_surge_is_weighted_by_the_maximum_and_unavailability_by_the_minimum():
    amounts = {"minimum": 3, "maximum": 4, "maxSurge": "50%", "maxUnavailable": "50%"}
    group = in_zone_of(amounts, TECHNICAL_ID)
    assert (group.max_surge, group.max_unavailable) == ("50%", "67%")


def test_the_resources_of_a_future_node_name_its_zone_and_its_machine_type():
    assert in_zone_of({}, TECHNICAL_ID).node_template is None
    given = {"nodeTemplate": {"capacity": {"cpu": 2}}, "machineType": "large"}
    expected = {
        "capacity": {"cpu": 2},
        "instanceType": "large",
        "region": "",
        "zone": "a",
        "architecture": "amd64",
    }
    assert in_zone_of(given, TECHNICAL_ID).node_template == expected
    assert in_zone_of(given | {"zones": []}, TECHNICAL_ID).node_template["zone"] == ""
    arm = in_zone_of(given | {"architecture": "arm64"}, TECHNICAL_ID).node_template
    assert arm["architecture"] == "arm64"


QUANTITY = r"expected a quantity such as 100m or 1Gi, got '{}'; correct it in the Shoot"
RESERVED = r"Worker ns/worker: spec.pools\[1\].kubeletConfig.kubeReserved: "
PROBLEMS: dict[str, tuple[Callable[[], object], str]] = {
    "no node agent": (
        lambda: hash_of_pool({"name": "p"}),
        r"Worker ns/worker: spec.pools\[1\].nodeAgentSecretName: expected the name of a Secret",
    ),
    "no version": (
        lambda: hash_of_pool(in_place(kubernetesVersion=None)),
        r"Worker ns/worker: spec.pools\[1\].kubernetesVersion: expected a .* got ''",
    ),
    **{
        f"version {version}": (
            partial(hash_of_pool, in_place(kubernetesVersion=version)),
            rf"spec.pools\[1\].kubernetesVersion: .* got '{version}'; correct it in the Shoot",
        )
        for version in ("1", "1.", "1.x.3", "abc.def", "1.31x")
    },
    **{
        f"quantity {value}": (
            partial(in_place_hash_of, in_place(kubeletConfig={"kubeReserved": {"cpu": value}})),
            RESERVED + QUANTITY.format(value),
        )
        for value in ("much", "Infinity", "1e999999999")
    },
    "a list as quantity": (
        lambda: in_place_hash_of(in_place(kubeletConfig={"kubeReserved": {"cpu": ["1"]}})),
        RESERVED + "expected a quantity",
    ),
    **{
        f"{name} {value!r}": (
            partial(in_place_hash_of, in_place(kubeletConfig={name: value})),
            rf"pools\[1\].kubeletConfig.{name}: expected an object, got {type(value).__name__}",
        )
        for name, value in {"kubeReserved": "1", "systemReserved": ["1"], "evictionHard": 5}.items()
    },
    "maxSurge": (
        lambda: in_zone_of({"maxSurge": "lots"}, TECHNICAL_ID),
        r"Worker ns/worker: spec.pools\[1\].maxSurge: expected a number or a percentage .* 'lots'",
    ),
    "maxUnavailable": (
        lambda: in_zone_of({"maxUnavailable": "x%"}, TECHNICAL_ID),
        r"spec.pools\[1\].maxUnavailable: expected a number or a percentage",
    ),
    "autoscaler": (
        lambda: in_zone_of({"clusterAutoscaler": {"scaleDownUnneededTime": "soon"}}, TECHNICAL_ID),
        r"spec.pools\[1\].clusterAutoscaler.scaleDownUnneededTime: expected a duration .* 'soon'",
    ),
    "no technical ID": (
        lambda: in_zone_of({}, {}),
        r"Cluster c: spec.shoot.status.technicalID: .* got None; gardenlet sets it",
    ),
    "odd technical ID": (
        lambda: in_zone_of({}, {"technicalID": 5}),
        r"Cluster c: spec.shoot.status.technicalID: .* got 5",
    ),
    "odd status": (
        lambda: in_zone_of({}, ["?"]),
        r"Cluster c: spec.shoot.status.technicalID: .* got None",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_wrong_pool_is_a_configuration_problem_with_the_fields_path_and_the_remedy(problem):
    work, words = PROBLEMS[problem]
    with pytest.raises(ConfigurationError, match=words) as caught:
        work()
    assert caught.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    assert "; " in caught.value.message, "it says what to do"


def test_machine_objects_are_named_after_the_technical_id():
    group = in_zone_of({}, TECHNICAL_ID)
    assert group.name == "shoot--a--b-test-worker-z1"
    assert group.class_name == "shoot--a--b-test-worker-z1-12345"


def test_zones_share_the_failed_machines_that_are_preserved():
    settings = {"machineControllerManager": {"autoPreserveFailedMachineMax": 3}}
    group = in_zone_of(settings, TECHNICAL_ID)
    assert group.status().auto_preserve_failed_machine_max == 2
    assert group.deployment_spec("worker", 1).auto_preserve_failed_machine_max == 2
    assert in_zone_of({}, TECHNICAL_ID).status().auto_preserve_failed_machine_max is None


UNSET = dict.fromkeys(
    [
        "autoscaler.gardener.cloud/scale-down-utilization-threshold",
        "autoscaler.gardener.cloud/scale-down-gpu-utilization-threshold",
        "autoscaler.gardener.cloud/scale-down-unneeded-time",
        "autoscaler.gardener.cloud/scale-down-unready-time",
        "autoscaler.gardener.cloud/max-node-provision-time",
    ],
    "",
)


def test_options_of_the_autoscaler_become_annotations_as_in_gardener():
    """The figures of Gardener's tests of GetMachineDeploymentClusterAutoscalerAnnotations."""
    options = {
        "scaleDownUtilizationThreshold": "0.5",
        "scaleDownGpuUtilizationThreshold": "0.6",
        "scaleDownUnneededTime": "1m0s",
        "scaleDownUnreadyTime": "2m0s",
        "maxNodeProvisionTime": "3m0s",
    }
    found = in_zone_of({"clusterAutoscaler": options}, TECHNICAL_ID).autoscaler_annotations
    values = ["0.5", "0.6", "1m0s", "2m0s", "3m0s"]
    assert found == dict(zip(UNSET, values, strict=True))
    assert in_zone_of({}, TECHNICAL_ID).autoscaler_annotations == UNSET


@pytest.mark.parametrize(
    "text", ["0", "30s", "1h30m0s", "24h0m0s", "1.5s", "500ms", "1µs", "100ns"]
)
def test_durations_of_the_autoscaler_are_copied(text):
    """gardenlet writes them as Go's `time.Duration` does."""
    options = {"clusterAutoscaler": {"scaleDownUnneededTime": text}}
    found = in_zone_of(options, TECHNICAL_ID).autoscaler_annotations
    assert found["autoscaler.gardener.cloud/scale-down-unneeded-time"] == text


@pytest.mark.parametrize(
    ("quantities", "written"),
    [
        ([None, None], "<nil>"),
        (["1024Mi", None], "1Gi"),
        ([2000, None], "2k"),
        (["0Gi"], "0"),
        (["0Gi", 2000], "2k"),
        (["0.5Ki", 488], "1k"),
        (["0.1n", "0.1n"], "2n"),
        (["0Gi", "100.25m"], "100250u"),
        (["10Gi", "1000.25Ki"], "10738442496"),
        (["250Gi", "1024m"], "268435456001024m"),
        (["15.5m", "20.5Ki"], "20992015500u"),
        (["1Mi", "0.5u"], "1048576000000500n"),
        (["1500.5Ti", "12345Gi"], "1548857Gi"),
        (["100E"], "100E"),
    ],
)
def test_quantities_are_added_and_written_as_go_does(quantities, written):
    """Each as Go's `resource.Quantity` has written it."""
    assert total(quantities) == written


@given(st.integers(1, 10**6), st.sampled_from(["T", "P", "E", "Ti", "Pi", "Ei"]))
def test_a_large_quantity_is_its_own_total(number, unit):
    from kubernetes.utils.quantity import parse_quantity  # with it comes the whole client

    text = f"{number}{unit}"
    assert parse_quantity(total([text])) == parse_quantity(text)


NUMBERS = st.integers(0, 10**6).map(str) | st.decimals(0, 5000, places=2).map(str)
QUANTITIES = st.builds(str.__add__, NUMBERS, st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))


@given(QUANTITIES, QUANTITIES)
def test_a_sum_of_quantities_is_neither_more_nor_less(one, other):
    from kubernetes.utils.quantity import parse_quantity  # with it comes the whole client

    there = total([one, other])
    assert parse_quantity(there) == parse_quantity(one) + parse_quantity(other)
    assert total([there]) == there or there.isdecimal(), "a format is lost where no unit shows it"
    assert parse_quantity(total([other, one])) == Decimal(parse_quantity(there))
