"""Flags, the environment and the file they may come from."""

import json
import subprocess
import sys
from pathlib import Path
from types import MethodType
from typing import Any

import pytest

from actuator.errors import ConfigurationError
from actuator.v1alpha1 import BackupBucket
from extensions.certificate.issuers import IssuerController
from generic.controller.predicates import has_namespace
from generic.kube.client import connect
from generic.manager.flags import from_args
from generic.manager.manager import Manager
from generic.manager.options import Options
from tests.support.cluster.harness import Script


def test_without_flags_the_defaults_hold():
    assert from_args([]) == Options()


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["--leader-election"], "leader_election", True),
        (["--leader-election=false"], "leader_election", False),
        (["--leader-election-id=x"], "leader_election_id", "x"),
        (["--metrics-bind-address=:8080"], "metrics_bind_address", ":8080"),
        (["--health-bind-address", "0"], "health_bind_address", "0"),
        (["--log-level=error"], "log_level", "error"),
        (["--log-format=json"], "log_format", "json"),
        (["--master=https://api:6443"], "master", "https://api:6443"),
        (["--controllers=a, b"], "controllers", ("a", "b")),
        (["--disable-controllers=a"], "disable_controllers", ("a",)),
        (["--ignore-operation-annotation"], "ignore_operation_annotation", True),
        (["--ignore-operation-annotation=true"], "ignore_operation_annotation", True),
        (["--gardener-version=v1.150.0"], "gardener_version", "v1.150.0"),
        (["--force-delete-budget=5"], "force_delete_budget", 5.0),
        (["--force-delete-budget=none"], "force_delete_budget", None),
        (["--outcome-events=all"], "outcome_events", "all"),
        (["--orphan-retention-days=0.5"], "orphan_retention_days", 0.5),
        (["--orphan-retention-days=none"], "orphan_retention_days", None),
        (["--self-hosted-shoot-cluster=true"], "self_hosted_shoot_cluster", True),
        (["--extension-classes=shoot,garden"], "extension_classes", ("shoot", "garden")),
        (["--heartbeat-namespace=ext"], "heartbeat_namespace", "ext"),
        (["--heartbeat-renew-interval-seconds=10"], "heartbeat_renew_interval_seconds", 10),
        (["--max-concurrent-reconciles=3"], "max_concurrent_reconciles", 3),
        (["--worker-max-concurrent-reconciles=7"], "workers", {"worker": 7}),
        (["--worker-max-concurrent-reconciles", "7"], "workers", {"worker": 7}),
        (
            ["--webhook-config-server-port=10250"],
            "webhook_config_server_port",
            10250,
        ),
        (["--webhook-config-cert-dir=/"], "webhook_config_cert_dir", Path("/")),
        (["--webhook-config-mode", "url"], "webhook_config_mode", "url"),
        (["--disable-webhooks=shoot"], "disable_webhooks", ("shoot",)),
    ],
)
def test_a_flag_of_gardeners_extensions_is_understood(arguments, field, value):
    assert getattr(from_args(arguments), field) == value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--log-level=loud"], "--log-level"),
        (["--log-format=xml"], "--log-format"),
        (["--no-such-flag"], "No such option"),
        (["--metrics-bind-address=nowhere"], "invalid address 'nowhere'"),
        (["--heartbeat-renew-interval-seconds=0"], "--heartbeat-renew-interval-seconds"),
        (["--max-concurrent-reconciles=0"], "--max-concurrent-reconciles"),
        (["--worker-max-concurrent-reconciles=0"], "--worker-max-concurrent-reconciles"),
        (["--worker-max-concurrent-reconciles"], "expected at least 1"),
        (["--worker-max-concurrent-reconciles=many"], "'many'"),
        (["--leader-election=perhaps"], "perhaps"),
        (["--force-delete-budget=0"], "above 0, or none"),
        (["--force-delete-budget=soon"], "above 0, or none"),
        (["--gardenlet"], "--gardenlet"),
        (["--config-file=/nowhere.yaml"], "cannot read --config-file /nowhere.yaml"),
    ],
)
def test_a_bad_value_is_refused_in_a_sentence_with_status_2(arguments, words, capsys):
    with pytest.raises(SystemExit) as exit:
        from_args(arguments)
    assert exit.value.code == 2
    assert words in capsys.readouterr().err


def test_the_command_line_wins_over_the_environment_which_wins_over_the_file(tmp_path, monkeypatch):
    file = tmp_path / "flags.yaml"
    file.write_text(
        "log-level: debug\nlog-format: json\nleader-election-id: file\nleader-election: true\n"
        "extension-classes: [shoot, seed]\nshutdown-timeout: 5\n"
        "worker-max-concurrent-reconciles: 2\nnetwork-max-concurrent-reconciles: 2\n"
        "dnsrecord-max-concurrent-reconciles: 2\n"
    )
    monkeypatch.setenv("ACTUATOR_LOG_FORMAT", "text")
    monkeypatch.setenv("ACTUATOR_LEADER_ELECTION_ID", "environment")
    monkeypatch.setenv("LEADER_ELECTION_NAMESPACE", "ours")
    monkeypatch.setenv("ACTUATOR_WORKER_MAX_CONCURRENT_RECONCILES", "3")
    monkeypatch.setenv("ACTUATOR_NETWORK_MAX_CONCURRENT_RECONCILES", "3")
    options = from_args(
        [
            f"--config-file={file}",
            "--leader-election-id=line",
            "--network-max-concurrent-reconciles=4",
        ]
    )
    assert (options.log_level, options.log_format) == ("debug", "text")
    assert options.leader_election_id == "line"
    assert options.leader_election_namespace == "ours"
    assert options.leader_election
    assert options.extension_classes == ("shoot", "seed")
    assert options.shutdown_timeout == 5.0
    assert options.workers == {"dnsrecord": 2, "worker": 3, "network": 4}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("log-level: loud", "loud"),
        ("nonsense: 1", "unknown flag --nonsense"),
        ("- a list", "expected one FLAG: VALUE"),
        ("{", "cannot read"),
        ("metrics-bind-address: nowhere", "invalid address"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence(content, words, tmp_path, capsys):
    file = tmp_path / "flags.yaml"
    file.write_text(content)
    with pytest.raises(SystemExit) as exit:
        from_args([f"--config-file={file}"])
    assert exit.value.code == 2
    assert words in capsys.readouterr().err


def test_a_json_file_will_do(tmp_path):
    file = tmp_path / "flags.json"
    file.write_text(json.dumps({"controllers": "a,b", "--leader-election": False}))
    assert from_args([f"--config-file={file}"]).controllers == ("a", "b")


def test_the_url_of_the_api_server_may_be_another_than_in_the_kubeconfig(tmp_path):
    file = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "https://one:1"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {}}]}
    file.write_text(json.dumps({"current-context": "x", **config}))
    assert connect(file).host == "one:1"
    assert connect(file, server="https://two:2").host == "two:2"
    with pytest.raises(ConfigurationError, match="invalid API server URL 'two'"):
        connect(file, server="two")


NAMES = ["infrastructure", "infrastructure-gcp", "healthcheck-worker", "healthcheck-network"]


@pytest.mark.parametrize(
    ("only", "without", "left"),
    [
        ((), (), NAMES),
        (("infrastructure",), (), ["infrastructure"]),
        (("healthcheck",), (), ["healthcheck-worker", "healthcheck-network"]),
        ((), ("healthcheck",), ["infrastructure", "infrastructure-gcp"]),
        (("infrastructure", "healthcheck"), ("healthcheck-worker",), [NAMES[0], NAMES[3]]),
    ],
)
def test_controllers_are_chosen_by_name_or_prefix(only, without, left):
    options = Options(controllers=only, disable_controllers=without)
    assert options.enabled(NAMES) == set(left)


@pytest.mark.parametrize(
    "options",
    [
        Options(controllers=("infra",)),
        Options(disable_controllers=("infra",)),
        Options(workers={"infra": 2}),
    ],
)
def test_an_unknown_controller_is_refused_with_the_known_ones(options):
    manager = Manager(options)
    manager.add(Script(), type="x")
    manager.add_runnable("heartbeat", lambda client, stop: None)
    with pytest.raises(ConfigurationError, match="'infra'; set one of: heartbeat, infrastructure"):
        manager.start()


def test_a_program_with_an_unknown_controller_ends_with_status_2():
    program = (
        "from generic import Manager; from generic.manager.options import Options;"
        "Manager(Options(controllers=('x',))).run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "Error: --controllers: unknown controller 'x'; set one of: none\n"


def test_a_controller_is_named_by_its_name_or_prefix():
    options = Options(controllers=("infrastructure-gcp", "healthcheck"))
    assert [name for name in NAMES if options.is_named(name)] == NAMES[1:]
    assert not any(map(Options().is_named, NAMES))


def test_the_number_of_workers_is_set_by_name_prefix_or_default():
    options = Options(workers={"healthcheck": 1, "healthcheck-worker": 2})
    assert options.workers_of("healthcheck-worker") == 2
    assert options.workers_of("healthcheck-network") == 1
    assert options.workers_of("network") == 5
    assert options.workers_of("network", 3) == 3
    assert options.workers_of("healthcheck-network", 3) == 1, "the operator has the last word"


def test_several_actuators_of_a_kind_have_names_of_their_own():
    manager = Manager()
    for type in ("a", "b"):
        manager.add(Script(), type=type)
    assert [registration.name for registration in manager.registrations] == [
        "infrastructure",
        "infrastructure-b",
    ]


SERVED_TWICE = [
    pytest.param({"type": ["b", "c"]}, {}, "Infrastructure b", id="a type"),
    pytest.param({"type": "a"}, {"predicates": [has_namespace("n")]}, "Infrastructure a", id="n"),
    pytest.param({"type": "a", "namespaces": ["n"]}, {}, "Infrastructure a n", id="part"),
    pytest.param(
        {"type": "a", "namespaces": ["n", "m"]},
        {"namespaces": ["m", "o"]},
        "Infrastructure a m",
        id="a namespace",
    ),
]


@pytest.mark.parametrize(("added", "first", "served"), SERVED_TWICE)
def test_no_object_gets_two_actuators(added, first, served):
    manager = Manager()
    manager.add(Script(), type=["a", "b"], **first)
    with pytest.raises(ValueError, match=rf"infrastructure already serves {served}; .*type=…"):
        manager.add(Script(), predicates=[lambda event: False], **added)
    manager.add(Script(), type="c")
    if "namespaces" in first:
        manager.add(Script(), type="a", namespaces=["p"])


def test_actuators_without_types_serve_the_same_objects():
    manager = Manager()
    manager.add(IssuerController())
    with pytest.raises(ValueError, match=r"issuer already serves Issuer x; .* or namespaces="):
        manager.add(IssuerController(), type="x")


@pytest.mark.parametrize("namespaces", ["abc", [""], ["a", ""]])
def test_namespaces_are_a_list_of_names(namespaces):
    with pytest.raises(ValueError, match="set a list of names"):
        Manager().add(Script(), type="a", namespaces=namespaces)


def test_a_cluster_scoped_kind_has_no_namespaces_to_select():
    with pytest.raises(ValueError, match="BackupBucket objects have no namespace; remove"):
        Manager().add(Script(BackupBucket), type="a", namespaces=["n"])


def test_a_heartbeat_is_there_when_its_namespace_is():
    quiet = Manager(Options())
    assert not quiet.runnables
    options = Options(heartbeat_namespace="ext", leader_election_id="aws-leader-election")
    (heartbeat,) = Manager(options).runnables
    assert heartbeat.name == "heartbeat"
    assert isinstance(heartbeat.run, MethodType)
    owner: Any = heartbeat.run.__self__
    assert owner.name == "aws"
