"""Pods as data: the parts of a pod's spec for a process, and the status."""

from datetime import UTC, datetime, timedelta

import pytest

from generic.testing.landscape.pods import (
    ContainerState,
    Missing,
    PodRefused,
    check,
    environ,
    expand,
    image_name,
    ports_of,
    status,
)

NOW = datetime(2026, 11, 25, tzinfo=UTC)
RUNNING = {"running": {"startedAt": "2026-11-25T00:00:00Z"}}


def pod(container=None, **spec):
    container = {"name": "main", "image": "x", **(container or {})}
    meta = {"name": "a", "namespace": "n", "uid": "u"}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def checked(container=None, **spec):
    made = pod(container, **spec)
    check(made, made["spec"]["containers"][0])


HOSTILE = [
    ({}, {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}, "volume root is a hostPath"),
    ({}, {"volumes": [{"name": "v", "csi": {"driver": "x"}}]}, "volume v is a csi"),
    ({}, {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {}}]}, "volume v is a hostPath"),
    ({"env": [{"name": "LD_PRELOAD", "value": "x"}]}, {}, "LD_PRELOAD changes"),
    ({"env": [{"name": "LD_LIBRARY_PATH", "value": "x"}]}, {}, "LD_LIBRARY_PATH changes"),
    ({"env": [{"name": "PYTHONPATH", "value": "x"}]}, {}, "PYTHONPATH changes"),
    ({"env": [{"name": "PYTHONSTARTUP", "value": "x"}]}, {}, "PYTHONSTARTUP changes"),
    ({"env": [{"name": "DYLD_INSERT_LIBRARIES", "value": "x"}]}, {}, "DYLD_INSERT_LIBRARIES"),
    ({"env": [{"name": "GLIBC_TUNABLES", "value": "x"}]}, {}, "GLIBC_TUNABLES changes"),
    ({"env": [{"name": "PATH", "value": "x"}]}, {}, "PATH changes"),
    ({"env": [{"name": "GARDEN_KUBECONFIG", "value": "x"}]}, {}, "GARDEN_KUBECONFIG changes"),
    ({"envFrom": [{"secretRef": {"name": "x"}}]}, {}, "envFrom is not supported"),
    ({"volumeMounts": [{"name": "v", "mountPath": "/"}]}, {}, "mountPath '/'"),
    ({"volumeMounts": [{"name": "v", "mountPath": "etc"}]}, {}, "mountPath 'etc'"),
    ({"volumeMounts": [{"name": "v", "mountPath": "/a/../.."}]}, {}, "mountPath"),
    ({"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "../b"}]}, {}, "leaves its"),
    ({"volumeMounts": [{"name": "v", "mountPath": "/a", "subPathExpr": "$"}]}, {}, "subPathExpr"),
]  # fmt: skip


@pytest.mark.parametrize(("container", "spec", "sentence"), HOSTILE)
def test_a_spec_that_reaches_outside_the_pod_is_refused_in_one_sentence(container, spec, sentence):
    with pytest.raises(PodRefused) as refused:
        checked(container, **spec)
    text = str(refused.value)
    assert sentence in text
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("container", "spec"),
    [
        ({}, {}),
        ({}, {"volumes": [{"name": "v"}, {"name": "w", "emptyDir": {"medium": "Memory"}}]}),
        ({}, {"volumes": [{"name": "v", "projected": {"sources": []}}]}),
        ({"env": [{"name": "MALLOC_ARENA_MAX", "value": "2"}, {"name": "LDAP", "value": "x"}]}, {}),
        ({"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "b/..c"}]}, {}),
    ],
)
def test_settings_of_gardeners_pods_are_accepted(container, spec):
    checked(container, **spec)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("kube-apiserver", "kube-apiserver"),
        ("registry:5000/a/kube-apiserver:v1.36.3", "kube-apiserver"),
        ("registry/a/kube-apiserver@sha256:1234", "kube-apiserver"),
        ("registry/a/kube-apiserver:v1@sha256:1234", "kube-apiserver"),
        ("landscape/extension-aws:0.1.0", "extension-aws"),
    ],
)
def test_the_name_of_an_image(image, name):
    assert image_name(image) == name


def test_variables_come_from_values_fields_secrets_and_config_maps():
    container = {
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "value": "$(A)-$(C)-$$(A)"},
            {"name": "NS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "M", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
            {
                "name": "O",
                "valueFrom": {"secretKeyRef": {"name": "s", "key": "x", "optional": True}},
            },
            {"name": "E"},
        ]
    }
    data = {("secrets", "s"): {"k": b"secret"}, ("configmaps", "m"): {"k": b"map"}}
    made = pod(container)
    found = environ(made, container, lambda kind, _namespace, name: data.get((kind, name)))
    assert found == {"A": "1", "B": "1-$(C)-$(A)", "NS": "n", "S": "secret", "M": "map"}


@pytest.mark.parametrize(
    ("source", "error", "sentence"),
    [
        ({"secretKeyRef": {"name": "s", "key": "k"}}, Missing, "secrets 's' has no key 'k'."),
        (
            {"resourceFieldRef": {}},
            PodRefused,
            "a variable from resourceFieldRef is not supported.",
        ),
        ({"fieldRef": {"fieldPath": "spec.x"}}, PodRefused, "the field spec.x is not supported."),
    ],
)
def test_a_variable_without_a_value_is_named(source, error, sentence):
    container = {"env": [{"name": "A", "valueFrom": source}]}
    with pytest.raises(error) as raised:
        environ(pod(container), container, lambda *_: None)
    assert str(raised.value) == sentence


def test_unknown_variables_in_arguments_stay():
    assert expand("$(A) $(B) $$(A) $C", {"A": "1"}) == "1 $(B) $(A) $C"


def test_ports_have_numbers_and_names():
    ports = [{"containerPort": 80}, {"containerPort": 443, "name": "https"}]
    assert ports_of({"ports": ports}) == {80: 80, 443: 443, "https": 443}


def waiting(reason):
    return {"waiting": {"reason": reason}}


def ended(code):
    return {"terminated": {"exitCode": code}}


@pytest.mark.parametrize(
    ("states", "phase"),
    [
        ([ContainerState(RUNNING, ready=True)], "Running"),
        ([ContainerState(RUNNING)], "Running"),
        ([ContainerState(waiting("Refused"))], "Pending"),
        ([ContainerState(waiting("CrashLoopBackOff"), restarts=1)], "Running"),
        ([ContainerState(waiting("CrashLoopBackOff"), last=ended(1))], "Running"),
        ([ContainerState(ended(0))], "Succeeded"),
        ([ContainerState(ended(0)), ContainerState(ended(2))], "Failed"),
        ([ContainerState(ended(0)), ContainerState(RUNNING)], "Running"),
    ],
)
def test_the_phase_follows_from_the_containers(states, phase):
    made = pod()
    made["spec"]["containers"] = [{"name": str(n), "image": "x"} for n in range(len(states))]
    assert status(made, states, "", NOW)["phase"] == phase


def test_a_condition_keeps_its_time_until_it_changes():
    made = pod()
    made["status"] = {"qosClass": "BestEffort"}
    made["status"] = status(made, [ContainerState(RUNNING)], "not ready", NOW)
    assert made["status"]["qosClass"] == "BestEffort"
    later = NOW + timedelta(minutes=1)
    changed = status(made, [ContainerState(RUNNING, ready=True)], "", later)
    times = {
        condition["type"]: condition["lastTransitionTime"] for condition in changed["conditions"]
    }
    before = "2026-11-25T00:00:00Z"
    after = "2026-11-25T00:01:00Z"
    assert times == {
        "PodScheduled": before, "Initialized": before, "ContainersReady": after, "Ready": after
    }  # fmt: skip
    assert changed["startTime"] == before
    messages = {c.get("message") for c in made["status"]["conditions"] if c["status"] == "False"}
    assert messages == {"not ready"}
