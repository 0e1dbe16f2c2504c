"""Pods of a real cluster run as local processes, by their spec."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

from actuator.interface import Resource
from generic.kube.client import connect
from generic.kube.headers import Request
from generic.testing.landscape.caches import PODS, SERVICES
from tests.support.cluster.harness import eventually
from tests.support.landscape.pods import DEPLOYMENTS, JOBS, ask

pytestmark = pytest.mark.long  # one worker starts the cluster, and keeps it

REVIEWS = Resource("authentication.k8s.io/v1", "selfsubjectreviews", namespaced=False)
SETTINGS = [{"name": "settings", "configMap": {"name": "settings"}}]
MOUNTED = [{"name": "settings", "mountPath": "/etc/settings"}]
CONFIGURED = {"args": ["--config=/etc/settings"], "volumeMounts": MOUNTED}


def folder_of(state) -> Path:
    """The folder of the pod of a program."""
    return Path(state["environ"]["HOME"]).parents[1]


def test_a_deployment_becomes_available_and_its_service_leads_to_it(place):
    place.config("settings", ready="yes", colour="blue")
    place.service("web")
    env = [
        {"name": "WHERE", "value": "/etc/settings/colour"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    args = ["--config=/etc/settings", "--of=$(WHERE)"]
    command = ["/usr/bin/program", "word"]
    container = {"command": command, "args": args, "env": env, "volumeMounts": MOUNTED}
    place.deploy("web", container, volumes=SETTINGS)
    place.wait_available("web")
    state = eventually(lambda: place.ask("web"))
    settings = folder_of(state) / "volumes" / "settings"
    assert state["files"] == {"ready": "yes", "colour": "blue"}
    assert state["arguments"][1:] == ["word", f"--config={settings}", f"--of={settings}/colour"]
    assert state["environ"]["WHERE"] == f"{settings}/colour"
    (pod,) = place.pods()
    assert state["environ"]["POD"] == pod["metadata"]["name"]
    assert state["cwd"] == state["environ"]["HOME"]


def test_a_program_gets_none_of_the_environment_of_its_user(place, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the user")
    place.service("web")
    place.deploy("web")
    place.wait_available("web")
    environ = eventually(lambda: place.ask("web"))["environ"]
    assert "AWS_SECRET_ACCESS_KEY" not in environ
    assert environ["HOME"].startswith(str(place.seed.processes.directory))


def test_only_the_user_can_read_the_files_of_a_pod(place):
    place.config("settings", ready="yes")
    place.service("web")
    place.deploy("web", CONFIGURED, volumes=SETTINGS)
    place.wait_available("web")
    folder = folder_of(eventually(lambda: place.ask("web")))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert len([path for path in modes if path.is_file()]) >= 5  # token, CA, kubeconfig


def test_a_program_has_the_token_of_its_service_account(place):
    place.service("web")
    place.deploy("web")
    place.wait_available("web")
    kubeconfig = Path(eventually(lambda: place.ask("web"))["environ"]["KUBECONFIG"])
    review = connect(kubeconfig).create(REVIEWS, {"metadata": {}})["status"]["userInfo"]
    assert review["username"] == f"system:serviceaccount:{place.name}:default"
    (pod,) = place.pods()
    bound = review["extra"]["authentication.kubernetes.io/pod-uid"]
    assert bound == [pod["metadata"]["uid"]]


def test_a_pod_that_mounts_no_service_account_has_none(place):
    place.service("web")
    place.deploy("web", automountServiceAccountToken=False)
    place.wait_available("web")
    assert eventually(lambda: place.ask("web"))["environ"]["KUBECONFIG"] == "None"


def test_a_rolling_update_stops_the_old_process_after_the_new_one_is_ready(place):
    place.config("settings", ready="yes")
    place.service("web")
    place.deploy("web", CONFIGURED, volumes=SETTINGS)
    place.wait_available("web")
    old = eventually(lambda: place.ask("web"))
    place.client.patch(
        DEPLOYMENTS,
        "web",
        place.name,
        [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "second"}],
    )
    answers = []
    stop = threading.Event()

    def keep_asking() -> None:
        while not stop.is_set():
            try:
                answers.append(place.ask("web")["pid"])
            except (OSError, IndexError, ValueError) as error:  # nobody serves
                answers.append(repr(error))
            time.sleep(0.02)

    asking = threading.Thread(target=keep_asking)
    asking.start()
    try:
        place.wait_available("web")
        new = eventually(lambda: next(x for x in [place.ask("web")] if x["pid"] != old["pid"]))
        eventually(lambda: len(place.running()) == 1)
    finally:
        stop.set()
        asking.join()
    assert new["arguments"][-1] == "second"
    assert list(dict.fromkeys(answers)) == [old["pid"], new["pid"]]
    eventually(lambda: not folder_of(old).exists())


def test_changes_of_config_maps_and_secrets_arrive_in_files(place):
    place.config("settings", ready="yes", colour="blue")
    place.secret("credentials", key="1")
    sources = [{"configMap": {"name": "settings"}}, {"secret": {"name": "credentials"}}]
    place.service("web")
    volumes = [{"name": "settings", "projected": {"sources": sources}}]
    place.deploy("web", CONFIGURED, volumes=volumes)
    place.wait_available("web")
    before = eventually(lambda: place.ask("web"))
    for plural, data in (("configmaps", {"colour": "red"}), ("secrets", {"key": "Mg=="})):
        place.client.patch(
            Resource("v1", plural),
            {"configmaps": "settings", "secrets": "credentials"}[plural],
            place.name,
            {"data": data},
        )
    eventually(lambda: place.ask("web")["files"] == {"ready": "yes", "colour": "red", "key": "2"})
    assert place.ask("web")["pid"] == before["pid"]


def test_readiness_follows_the_probe_and_the_service_follows_readiness(place):
    place.config("settings", ready="no")
    place.service("web")
    place.pod("web", CONFIGURED, volumes=SETTINGS)
    eventually(lambda: place.status("web")["state"].get("running"))
    conditions = {c["type"]: c["status"] for c in place.get("web")["status"]["conditions"]}
    assert conditions["Ready"] == conditions["ContainersReady"] == "False"
    assert place.seed.router.find(place.name, "web", 80) == []
    settings = Resource("v1", "configmaps"), "settings", place.name
    place.client.patch(*settings, {"data": {"ready": "yes"}})
    place.wait_ready("web")
    eventually(lambda: place.ask("web"))
    place.client.patch(*settings, {"data": {"ready": "no"}})
    eventually(lambda: not place.status("web")["ready"])
    eventually(lambda: place.seed.router.find(place.name, "web", 80) == [])
    assert place.status("web")["restartCount"] == 0


def test_a_service_leads_to_named_numbered_and_own_ports_of_the_pods_it_selects(place):
    ports = [
        {"name": "named", "port": 80, "targetPort": "http"},
        {"name": "number", "port": 81, "targetPort": 8080},
        {"name": "own", "port": 8080},
        {"name": "absent", "port": 82, "targetPort": 9999},
    ]
    place.service("web", ports=ports)
    place.service("other")
    place.service("headless", selector={"app": "web"}, clusterIP="None")
    place.service("external", selector={})
    place.deploy("web")
    place.wait_available("web")
    router = place.seed.router
    (local,) = eventually(lambda: router.find(place.name, "web", 80))
    assert [router.find(place.name, "web", port) for port in (81, 8080)] == [[local]] * 2
    assert router.find(place.name, "headless", 80) == [local]
    assert router.find(place.name, "web", 82) == []
    assert router.find(place.name, "other", 80) == router.find(place.name, "external", 80) == []
    address = place.client.get(SERVICES, "web", place.name)["spec"]["clusterIP"]
    assert place.seed.services.lookup(address) == (place.name, "web")
    assert place.seed.services.lookup("None") is None
    place.client.delete(SERVICES, "web", place.name)
    eventually(lambda: router.find(place.name, "web", 80) == [])
    assert place.seed.services.lookup(address) is None


def test_a_killed_process_is_started_again(place):
    place.service("web")
    place.pod("web")
    place.wait_ready("web")
    before = eventually(lambda: place.ask("web"))
    os.kill(before["pid"], signal.SIGKILL)
    status = eventually(lambda: (s := place.status("web"))["restartCount"] == 1 and s)
    eventually(lambda: place.status("web")["ready"])
    assert eventually(lambda: place.ask("web"))["pid"] != before["pid"]
    assert status["lastState"]["terminated"]["exitCode"] == 128 + signal.SIGKILL
    assert place.get("web")["status"]["phase"] == "Running"


def test_a_process_that_ends_again_and_again_is_in_crash_loop_backoff(place):
    place.pod("web", {"args": ["--exit=7"]})

    def waits() -> bool:
        status = place.status("web")
        waiting = (status.get("state") or {}).get("waiting") or {}
        return status.get("restartCount", 0) >= 3 and waiting.get("reason") == "CrashLoopBackOff"

    eventually(waits)
    status = place.status("web")
    assert status["lastState"]["terminated"]["exitCode"] == 7
    assert "ends at once" in status["lastState"]["terminated"]["message"]
    assert not status["ready"]
    assert place.get("web")["status"]["phase"] == "Running"


def test_a_pod_waits_for_its_secret(place):
    volumes = [{"name": "late", "secret": {"secretName": "late"}}]
    place.pod("web", volumes=volumes)
    waiting = eventually(lambda: place.status("web").get("state", {}).get("waiting"))
    assert waiting == {"reason": "ContainerCreating", "message": "Secret 'late' does not exist."}
    assert place.get("web")["status"]["phase"] == "Pending"
    place.secret("late", key="1")
    place.wait_ready("web")


def test_replicas_share_nothing(place):
    place.deploy("web", replicas=2)
    place.wait_available("web")
    place.service("web")
    ports = eventually(lambda: len(p := place.seed.router.find(place.name, "web", 80)) == 2 and p)
    first, second = (ask(port) for port in ports)
    assert first["pid"] != second["pid"]
    assert folder_of(first) != folder_of(second)


def test_an_image_can_have_one_process_for_all_replicas(place):
    place.service("web")
    place.deploy("web", {"image": "test/single:1"}, replicas=2)
    place.wait_available("web")
    before = eventually(lambda: place.ask("web"))
    assert len(place.running()) == 1
    served = before["environ"]["HOME"].split("/")[-3]
    (name,) = [p["metadata"]["name"] for p in place.pods() if p["metadata"]["uid"] == served]
    place.client.delete(PODS, name, place.name)
    eventually(lambda: place.is_gone(name) and len(place.running()) == 1)
    after = eventually(lambda: place.ask("web"))
    assert after["environ"]["HOME"] != before["environ"]["HOME"]
    place.wait_available("web")


def test_another_image_is_ready_without_a_process(place):
    place.deploy("web", {"image": "registry.example/nginx:1"}, replicas=2)
    place.wait_available("web")
    assert place.running() == []
    statuses = [pod["status"] for pod in place.pods()]
    assert {status["phase"] for status in statuses} == {"Running"}
    versions = {pod["metadata"]["resourceVersion"] for pod in place.pods()}
    time.sleep(1)  # nothing writes an unchanged status again
    assert {pod["metadata"]["resourceVersion"] for pod in place.pods()} == versions


def test_jobs_succeed(place):
    place.job("faked", {"image": "registry.example/tool:1"})
    place.job("real", {"args": ["--exit=0"]})
    place.job("failing", {"args": ["--exit=3"]})
    for name in ("faked", "real"):
        eventually(
            lambda name=name: place.client.get(JOBS, name, place.name)["status"]["succeeded"]
        )
    eventually(lambda: place.client.get(JOBS, "failing", place.name)["status"]["failed"])


def test_a_deleted_pod_ends_gracefully_and_leaves_nothing(place):
    place.service("web")
    place.pod("web")
    place.wait_ready("web")
    state = eventually(lambda: place.ask("web"))
    place.client.delete(PODS, "web", place.name)
    began = time.monotonic()
    eventually(lambda: place.is_gone("web"))
    assert time.monotonic() - began < 4  # not the grace period
    assert place.running() == []
    assert not folder_of(state).exists()
    assert place.seed.router.find(place.name, "web", 80) == []


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace_period(place):
    place.service("web")
    place.pod("web", {"args": ["--ignore-sigterm"]}, terminationGracePeriodSeconds=2)
    place.wait_ready("web")
    pid = eventually(lambda: place.ask("web"))["pid"]
    place.client.delete(PODS, "web", place.name)
    began = time.monotonic()
    eventually(lambda: place.seed.router.find(place.name, "web", 80) == [])
    assert Path(f"/proc/{pid}").exists()
    eventually(lambda: place.is_gone("web"))
    assert time.monotonic() - began > 1.5
    assert not Path(f"/proc/{pid}").exists()


def test_a_pod_whose_status_is_written_in_its_grace_period_is_removed_in_the_end(place):
    """It has a deletionTimestamp and no finalizers, and exists all the same."""
    place.pod("web", {"args": ["--ignore-sigterm"]}, terminationGracePeriodSeconds=2)
    place.wait_ready("web")
    place.client.delete(PODS, "web", place.name)
    pod = place.get("web")
    assert pod["metadata"]["deletionTimestamp"]
    late = {**pod["status"], "message": "late"}
    place.seed.kubelet._report(Request(place.name, "web"), pod, late)
    assert place.get("web")["status"]["message"] == "late"
    eventually(lambda: place.is_gone("web"))


def test_the_process_of_a_pod_that_was_removed_by_force_ends(place):
    place.service("web")
    place.pod("web", {"args": ["--ignore-sigterm"]})
    place.wait_ready("web")
    options = {"gracePeriodSeconds": 0}
    path = f"/api/v1/namespaces/{place.name}/pods/web"
    place.client.send("DELETE", path, body=json.dumps(options).encode())
    eventually(lambda: place.running() == [])
    place.pod("web")  # another one of that name
    place.wait_ready("web")
