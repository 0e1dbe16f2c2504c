"""A manager as a program: flags, signals, leader election, health, and words for bad input."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest

from actuator import Resource
from generic.manager.manager import Manager
from generic.manager.options import Options
from tests.support.cluster.harness import BINDINGS, ROLES, Script, eventually, own_user
from tests.support.objects.builders import infrastructure

PROGRAM = Path(__file__).parents[2].joinpath("support/programs/extension.py")
LEASES = Resource("coordination.k8s.io/v1", "leases")


class Running:
    """A program that runs, and its log so far."""

    def __init__(self, process, log):
        self.process = process
        self.log = log

    def text(self):
        return self.log.read_text()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(100)


@pytest.fixture
def program(environment, admin, seed, tmp_path):
    """Starts the program under its generated Role; ends it with the test."""
    manager = Manager(Options(leader_election=True, leader_election_namespace=seed.namespace))
    manager.add(Script(), type=seed.namespace)
    with own_user(environment, admin, manager, seed.namespace) as kubeconfig, ExitStack() as stack:

        def start(*flags, address="127.0.0.1:0", environ=()):
            log = tmp_path / f"log-{time.monotonic_ns()}"
            command = [sys.executable, str(PROGRAM), seed.namespace, f"--kubeconfig={kubeconfig}"]
            command += [f"--health-bind-address={address}", f"--metrics-bind-address={address}"]
            output = stack.enter_context(log.open("wb"))
            process = subprocess.Popen(
                [*command, *flags],
                stderr=output,
                stdout=output,
                env={**os.environ, **dict(environ)},
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return Running(process, log)

        yield start


def lease_flags(seed):
    return ["--leader-election", f"--leader-election-namespace={seed.namespace}"]


def holder(admin, seed):
    (lease,) = admin.list(LEASES, seed.namespace)
    return lease["spec"].get("holderIdentity")


def test_sigterm_ends_it_in_good_order_and_hands_the_lease_over_at_once(program, admin, seed):
    first = program(*lease_flags(seed))
    eventually(lambda: admin.list(LEASES, seed.namespace))
    second = program(*lease_flags(seed))
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    before = holder(admin, seed)
    assert first.stop() == 0
    seed.create(infrastructure(seed.namespace, seed.namespace, name="after"))
    eventually(lambda: seed.is_ready("after"))
    assert holder(admin, seed) not in ("", before)
    assert second.stop(signal.SIGINT) == 0
    assert not holder(admin, seed)


def test_a_process_that_loses_its_lease_ends(program, admin, seed):
    running = program(*lease_flags(seed))
    eventually(lambda: admin.list(LEASES, seed.namespace) and holder(admin, seed))
    eventually(lambda: "leading" in running.text())
    (lease,) = admin.list(LEASES, seed.namespace)
    name = lease["metadata"]["name"]
    stolen = {"holderIdentity": "a-thief", "renewTime": "2099-01-01T00:00:00.000000Z"}
    admin.patch(LEASES, name, seed.namespace, {"spec": stolen})
    assert running.process.wait(100) == 1
    assert "lease lost" in running.text()


def addresses(running):
    return re.findall(r"127\.0\.0\.1:\d+", running.text())


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_health_and_metrics_tell_the_truth(program, admin, seed, environment):
    running = program("--log-format=json")
    line = eventually(lambda: next(iter(lines(running, "serving")), None))
    url = f"http://{line['health']}"
    eventually(lambda: get(f"{url}/readyz")[0] == 200)
    assert get(f"{url}/healthz")[0] == 200
    status, body = get(f"http://{line['metrics']}/metrics")
    assert status == 200
    assert "controller_runtime_reconcile_total" in body
    assert get(f"{url}/nothing")[0] == 404


def test_a_manager_that_may_not_watch_is_alive_and_not_ready(program, admin, seed):
    binding = admin.get(BINDINGS, seed.namespace)
    admin.delete(BINDINGS, seed.namespace)
    running = program("--log-format=json")
    line = eventually(lambda: next(iter(lines(running, "serving")), None))
    url = f"http://{line['health']}"
    eventually(lambda: "forbidden" in get(f"{url}/readyz?verbose")[1])
    assert get(f"{url}/readyz")[0] == 503
    assert get(f"{url}/healthz")[0] == 200
    admin.create(BINDINGS, binding | {"metadata": {"name": seed.namespace}})
    eventually(lambda: get(f"{url}/readyz")[0] == 200, seconds=100)


def test_a_manager_that_may_not_write_orphans_is_alive_and_not_ready(program, admin, seed):
    role = admin.get(ROLES, seed.namespace)
    rules = [rule for rule in role["rules"] if "orphans" not in rule["resources"]]
    admin.patch(ROLES, seed.namespace, "", {"rules": rules})
    running = program("--log-format=json")
    line = eventually(lambda: next(iter(lines(running, "serving")), None))
    url = f"http://{line['health']}"
    eventually(lambda: "cannot write Orphans" in get(f"{url}/readyz?verbose")[1])
    assert get(f"{url}/readyz")[0] == 503
    assert get(f"{url}/healthz")[0] == 200
    admin.patch(ROLES, seed.namespace, "", {"rules": role["rules"]})
    eventually(lambda: get(f"{url}/readyz")[0] == 200)


def lines(running, message):
    whole = running.text().rpartition("\n")[0]  # the last one may be half written
    parsed = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
    return [line for line in parsed if line["msg"] == message]


def test_flags_come_from_the_environment_too(program, seed):
    running = program(environ={"ACTUATOR_LOG_FORMAT": "json"}.items())
    eventually(lambda: lines(running, "serving"))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(["--kubeconfig=/does/not/exist"], "/does/not/exist does not exist", id="file"),
        pytest.param(["--log-level=loud"], "'loud' is not one of", id="log level"),
    ],
)
def test_bad_flags_get_one_sentence_and_no_traceback(program, flags, words):
    running = program(*flags)
    assert running.process.wait(100) != 0
    assert words in running.text()
    assert "Traceback" not in running.text()


def test_a_broken_kubeconfig_gets_one_sentence(program, tmp_path):
    """test_kubeconfig.py has the table of errors in kubeconfigs."""
    path = tmp_path / "broken"
    path.write_text("{")
    running = program(f"--kubeconfig={path}")
    assert running.process.wait(100) == 1
    assert str(path) in running.text()
    assert "Traceback" not in running.text()
