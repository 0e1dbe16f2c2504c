"""The chart's pre-delete hook: Helm removes nothing as long as something needs the extension."""

import subprocess
import sys
import threading

import pytest
import yaml

from actuator import Resource
from actuator.errors import NotFound
from actuator.meta import format_time
from generic.kube.clock import SystemClock
from generic.library.charts import find_helm
from tests.support.cluster.harness import FINALIZER, eventually
from tests.support.objects.builders import infrastructure

ACTUATOR = [sys.executable, "-c", "from generic.tools.cli.main import main; main()"]
JOBS = Resource("batch/v1", "jobs")
DEPLOYMENTS = Resource("apps/v1", "deployments")
MODULE = """
from actuator import Actuator
from actuator.v1alpha1 import Infrastructure

class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...
"""


@pytest.fixture(scope="session")
def helm():
    """The real helm."""
    return find_helm(print)


@pytest.fixture
def written(command, tmp_path, monkeypatch, namespace):
    """The folder of an extension's chart, for the type named like the namespace."""
    module = f"hooked_{namespace.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    flags = ("--type", namespace, "--output", "out", "--name", "mine")
    command("chart", f"{module}:Network", *flags)
    chart = tmp_path / "out" / "mine"
    for policy in (chart / "templates").glob("policy-*.yaml"):
        policy.unlink()  # the policies would keep the open Orphans of other tests
    return chart


@pytest.fixture
def run_helm(helm, environment, namespace):
    """Calls helm as an administrator."""

    def call(verb, *arguments):
        command = [helm, verb, "release", *arguments, "--namespace", namespace]
        command += ["--kubeconfig", environment.kubeconfig]
        return subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)

    return call


def hooks(run_helm, written, **values):
    """The rendered Jobs."""
    sets = [part for key, value in values.items() for part in ("--set-json", f"{key}={value}")]
    done = run_helm("template", written, *sets)
    assert done.returncode == 0, done.stderr
    return [obj for obj in yaml.safe_load_all(done.stdout) if obj and obj["kind"] == "Job"]


def test_the_hook_waits_for_the_served_types_and_classes_and_ends_in_time(
    run_helm, written, namespace
):
    (job,) = hooks(run_helm, written, drain='{"timeoutSeconds": 100}', extensionClasses='["seed"]')
    assert job["metadata"]["name"] == "mine-drain"
    assert job["metadata"]["namespace"] == namespace
    assert job["metadata"]["annotations"] == {
        "helm.sh/hook": "pre-delete",
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    }
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["activeDeadlineSeconds"] > 100
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["serviceAccountName"] == "mine"
    assert pod["restartPolicy"] == "Never"
    assert container["command"] == ["actuator", "drain"]
    assert container["args"][1:] == [
        f"--type={namespace}",
        "--extension-classes=seed",
        "--timeout=100",
        "--allow-missing-crds",
    ]
    assert "ports" not in container


def test_the_managers_service_does_not_select_the_hooks_pod(run_helm, written):
    (job,) = hooks(run_helm, written)
    done = run_helm("template", written)
    (service,) = (
        obj for obj in yaml.safe_load_all(done.stdout) if obj and obj["kind"] == "Service"
    )
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert not service["spec"]["selector"].items() <= labels.items()
    assert labels["networking.gardener.cloud/to-runtime-apiserver"] == "allowed"


def test_a_value_switches_the_hook_off(run_helm, written):
    assert hooks(run_helm, written, drain='{"enabled": false}') == []


@pytest.fixture
def job_controller(admin, environment, namespace):
    """Runs the command of the hook's Job as a process, under its account; returns its result."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    kubeconfig = environment.user_kubeconfig(f"system:serviceaccount:{namespace}:mine", groups)
    stop = threading.Event()
    answers = []

    def look():
        try:
            job = admin.get(JOBS, "mine-drain", namespace)
        except NotFound:
            return
        if (job.get("status") or {}).get("conditions"):
            return
        (container,) = job["spec"]["template"]["spec"]["containers"]
        command = [*ACTUATOR, *container["command"][1:], *container["args"]]
        done = subprocess.run(
            [*command, "--kubeconfig", kubeconfig],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        answers.append(done)
        report(admin, namespace, succeeded=done.returncode == 0)

    def work():
        while not stop.wait(0.1):
            look()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield answers
    stop.set()
    thread.join(60)


def report(admin, namespace, *, succeeded):
    """The status of a Job that has ended, in the two steps that the API server asks for."""
    now = format_time(SystemClock().now())
    first = "FailureTarget"
    last = "Failed"
    counter = "failed"
    status = {"startTime": now}
    if succeeded:
        first = "SuccessCriteriaMet"
        last = "Complete"
        counter = "succeeded"
        status["completionTime"] = now
    conditions = [{"type": type, "status": "True", "reason": "Ended"} for type in (first, last)]
    whole = {"status": {**status, counter: 1, "conditions": conditions}}
    admin.patch(JOBS, "mine-drain", namespace, whole, subresource="status")


def test_helm_removes_nothing_while_something_needs_the_extension(
    run_helm, written, admin, seed, namespace, job_controller
):
    done = run_helm("install", written, "--set-json", 'drain={"timeoutSeconds": 1}')
    assert done.returncode == 0, done.stderr
    seed.create(infrastructure(namespace, namespace, finalizers=[FINALIZER]))
    seed.create(infrastructure(namespace, namespace, "other", finalizers=[FINALIZER]))
    seed.delete("other")
    done = run_helm("uninstall", "--timeout", "200s")
    assert done.returncode != 0
    (answer,) = job_controller
    assert answer.returncode == 1
    assert "infra" in answer.stdout
    assert "Deleting for" in answer.stdout
    assert admin.get(DEPLOYMENTS, "mine", namespace)
    assert admin.get(JOBS, "mine-drain", namespace), "its log is kept"

    for name in ("infra", "other"):
        seed.patch({"metadata": {"finalizers": None}}, name)
    done = run_helm("uninstall", "--timeout", "200s")
    assert done.returncode == 0, done.stderr
    assert job_controller[-1].returncode == 0, job_controller[-1].stderr
    for resource, name in ((DEPLOYMENTS, "mine"), (JOBS, "mine-drain")):
        eventually(lambda r=resource, n=name: gone(admin, r, n, namespace))


def gone(admin, resource, name, namespace):
    try:
        admin.get(resource, name, namespace)
    except NotFound:
        return True
    return False
