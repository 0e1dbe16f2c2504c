"""A hostile pod starts nothing, and its status and an event have the reason."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from tests.support.cluster.harness import eventually
from tests.support.landscape.pods import DEPLOYMENTS

pytestmark = pytest.mark.long  # one worker starts the cluster, and keeps it

MOUNT = [{"name": "v", "mountPath": "/v"}]
EMPTY = [{"name": "v", "emptyDir": {}}]
SHELL = {"command": ["/bin/sh", "-c", "touch /tmp/hostile"]}
HOSTILE = {
    "a command": (SHELL, {}, "is not 'program', the program of the image"),
    "a second command": ({"command": ["program", "x"], "args": ["--log=/etc/x"]}, {}, "/etc/x"),
    "hostPath": (
        {"volumeMounts": MOUNT},
        {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
        "volume v is a hostPath",
    ),
    "a loader": ({"env": [{"name": "LD_PRELOAD", "value": "x.so"}]}, {}, "LD_PRELOAD"),
    "a module path": ({"env": [{"name": "PYTHONPATH", "value": "/v"}]}, {}, "PYTHONPATH"),
    "a path in a variable": ({"env": [{"name": "A", "value": "/root/.ssh"}]}, {}, "/root/.ssh"),
    "a path in an argument": ({"args": ["--read=/etc/passwd"]}, {}, "/etc/passwd"),
    "a way out of a volume": (
        {"args": ["--read=/v/../../../secret"], "volumeMounts": MOUNT},
        {"volumes": EMPTY},
        "a path with '..'",
    ),
    "a mount over everything": (
        {"volumeMounts": [{"name": "v", "mountPath": "/"}]},
        {"volumes": EMPTY},
        "mountPath '/'",
    ),
}


@pytest.mark.parametrize("plan", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_pod_starts_nothing_and_the_reason_is_shown(place, plan):
    container, spec, sentence = plan
    place.pod("hostile", container, **spec)
    waiting = eventually(lambda: place.status("hostile").get("state", {}).get("waiting"))
    assert waiting["reason"] == "Refused"
    assert sentence in waiting["message"]
    assert waiting["message"].endswith(".")
    eventually(lambda: [event for event in place.events() if event.startswith("Refused: ")])
    status = place.get("hostile")["status"]
    assert status["phase"] == "Pending"
    ready = next(condition for condition in status["conditions"] if condition["type"] == "Ready")
    assert (ready["status"], ready["message"]) == ("False", waiting["message"])
    assert place.running() == []
    assert not Path("/tmp/hostile").exists()


def test_a_hostile_deployment_never_becomes_available_and_can_be_corrected(place):
    place.deploy("web", SHELL)
    eventually(lambda: [event for event in place.events() if event.startswith("Refused: ")])
    time.sleep(0.5)
    assert place.running() == []
    command = "/spec/template/spec/containers/0/command"
    place.client.patch(DEPLOYMENTS, "web", place.name, [{"op": "remove", "path": command}])
    place.wait_available("web")
    assert len(place.running()) == 1


def test_a_pod_beside_a_hostile_one_runs(place):
    place.pod("hostile", SHELL)
    place.pod("web")
    place.wait_ready("web")


def test_a_hostile_second_container_of_a_pod_ends_the_first(place):
    template = place.template("web", {}, {})["spec"]["containers"][0]
    evil = {**template, "name": "evil", **SHELL}
    place.pod("web", containers=[template, evil])
    waiting = eventually(lambda: place.status("web").get("state", {}).get("waiting"))
    assert waiting["reason"] == "Refused"
    assert place.running() == []


def test_a_link_that_a_program_made_leads_its_next_start_nowhere(place):
    """An emptyDir stays when a container starts again, and its program can write there."""
    mounts = [*MOUNT, {"name": "v", "mountPath": "/inner", "subPath": "inner"}]
    place.service("web")
    place.pod("web", {"args": ["--config=/v"], "volumeMounts": mounts}, volumes=EMPTY)
    place.wait_ready("web")
    state = eventually(lambda: place.ask("web"))
    volume = Path(state["environ"]["HOME"]).parents[1] / "volumes" / "v"
    (volume / "inner").rmdir()
    (volume / "inner").symlink_to("/etc")
    place.ask("web", "/exit?1", "POST")
    waiting = eventually(lambda: (w := place.status("web")["state"].get("waiting"))
                         and w["reason"] == "Refused" and w)  # fmt: skip
    assert waiting["message"] == "subPath 'inner' leaves its volume."
    assert place.running() == []


def test_the_folders_of_all_pods_are_private(place):
    folder = place.seed.processes.directory
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "pods").stat().st_mode) == 0o700
