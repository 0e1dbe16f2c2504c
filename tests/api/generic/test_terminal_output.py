"""Text of tenants reaches an operator's terminal without control characters and markup."""

import json
import unicodedata

import pytest

from actuator import ExternalResource
from actuator.errors import DecodeError, NotFound
from actuator.meta import format_time
from extensions.aws.config import InfrastructureConfig
from generic.kube.clock import SystemClock
from generic.reconciler.orphans import ORPHANS, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.record import record
from tests.support.cluster.harness import EVENTS, FINALIZER
from tests.support.objects.builders import infrastructure
from tests.support.objects.strictly import decode_strictly

NOW = SystemClock().now()
HOSTILE = "\x1b]0;owned\x07 \x9b31m \u202e \u2066 \u2028 \x7f [bold]loud[/bold] :smile:"
"""Sets a terminal's title, turns it red, and reverses the rest, where it is not escaped."""
ESCAPED = ("\\u001b]0;owned", "\\u009b31m", "\\u202e", "[bold]loud[/bold]", ":smile:")
MODULE = """
from actuator import Actuator
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure

class Network(Actuator[Infrastructure, Raw]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...

def extension(manager):
    manager.add(Network(), type="TYPE")
"""


def assert_is_printable(output):
    """No character steers a terminal; lines, and nothing else, are kept."""
    assert [c for c in output if unicodedata.category(c)[0] == "C" and c != "\n"] == []
    assert "\u2028" not in output


def assert_shows(output):
    """The text is there, readable, wherever a table broke its lines."""
    assert_is_printable(output)
    joined = "".join(c for c in output if not c.isspace() and c not in "│┃|")
    for part in ESCAPED:
        assert part in joined


@pytest.fixture
def invoke(command, environment, monkeypatch):
    """Runs a command on the embedded cluster; returns both streams."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, status=0):
        done = command(*arguments, "--kubeconfig", environment.kubeconfig, status=status)
        return done.stdout + done.stderr

    return run


@pytest.fixture
def stuck(seed, namespace, admin):
    """An object whose error, conditions, annotations and events hold hostile text."""
    try:
        decode_strictly(InfrastructureConfig, {"networks": {}, HOSTILE: 1})
    except DecodeError as error:
        description = f"{HOSTILE} {error}"
    assert "\x1b" in description
    seed.create(
        infrastructure(
            namespace,
            namespace,
            finalizers=[FINALIZER],
            annotations={"gardener.cloud/operation": HOSTILE},
            provider_config={HOSTILE: HOSTILE},
        )
    )
    seed.delete()
    moment = format_time(NOW)
    condition = {"type": "Ready", "status": "False", "reason": "R", "message": HOSTILE}
    condition |= {"lastTransitionTime": moment, "lastUpdateTime": moment}
    status = {
        "lastError": {"description": description},
        "lastOperation": {
            "description": HOSTILE,
            "lastUpdateTime": moment,
            "progress": 1,
            "state": "Error",
            "type": "Delete",
        },
        "conditions": [condition],
    }
    seed.patch({"status": status}, subresource="status")
    meta = seed.get()["metadata"]
    about = {"kind": "Infrastructure", "namespace": namespace, "name": "infra", "uid": meta["uid"]}
    where = {"metadata": {"name": "infra.1", "namespace": namespace}, "involvedObject": about}
    text = {"type": "Warning", "reason": "R", "message": HOSTILE, "lastTimestamp": moment}
    admin.create(EVENTS, {"apiVersion": "v1", "kind": "Event", **where, **text})
    yield seed
    try:
        seed.patch({"metadata": {"finalizers": None}})
    except NotFound:
        pass


def test_explain_shows_tenants_text_escaped(invoke, stuck):
    target = f"{stuck.namespace}/Infrastructure/infra"
    page = invoke("explain", target)
    assert_shows(page)
    assert page.count("\\u202e") >= 3  # the error, the condition, the event
    assert_is_printable(invoke("explain", stuck.namespace))
    told = invoke("explain", target, "-o", "json")
    assert_is_printable(told)
    assert HOSTILE in json.loads(told)["standing"]["lastError"]["description"]


def test_drain_shows_tenants_text_escaped(invoke, stuck, tmp_path, monkeypatch):
    name = f"terminal_{stuck.namespace.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE.replace("TYPE", stuck.namespace))
    monkeypatch.chdir(tmp_path)
    arguments = (f"{name}:extension", "--timeout", "0")
    assert_shows(invoke("drain", *arguments, status=1))
    told = invoke("drain", *arguments, "-o", "json", status=1)
    assert_is_printable(told)


def test_orphans_list_escapes_records_of_extensions(invoke, admin, namespace):
    former = OrphanedFrom(
        api_version="extensions.gardener.cloud/v1alpha1",
        kind="Infrastructure",
        namespace=namespace,
        name="infra",
        uid="0b9e6b1c-58a5-4b0a-9a53-8c1d2f3e4a5b",
        type=namespace,
    )
    resource = ExternalResource(type="VPC", id=HOSTILE, region=HOSTILE, tags={"a": HOSTILE})
    name = record(admin, former, resource, OrphanReason.FORCED, HOSTILE, NOW).metadata.name
    assert_shows(invoke("orphans", "list", "--shoot", namespace))
    told = invoke("orphans", "list", "--shoot", namespace, "-o", "json")
    assert_is_printable(told)
    assert json.loads(told)["orphans"][0]["id"] == HOSTILE
    closed = invoke("orphans", "close", name, "--even-if-exists", "--note", "x")
    assert_shows(closed)
    admin.delete(ORPHANS, name)


def test_an_error_at_the_end_of_a_command_is_escaped(invoke, admin):
    assert_shows(invoke("orphans", "close", HOSTILE, status=1))
