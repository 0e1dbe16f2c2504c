"""The alerts of a chart, sent to the real Alertmanager: how often they page a person.

Alertmanager has the route of docs/monitoring.md, or the configuration of Gardener. A real
Prometheus evaluates the rules, whose time runs faster (`FASTER`), on the metrics of an extension.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from generic.serving.metrics import Metrics, Terminating, TerminatingState
from generic.tools.packaging.monitoring import rules_of
from hack.observe import seeds
from hack.observe.__main__ import ask
from tests.support.cluster.harness import eventually
from tests.support.monitoring.alertmanager import (
    FASTER,
    faster,
    known,
    receiving,
    running_alertmanager,
    send,
    webhook,
)
from tests.support.monitoring.operator import running_prometheus
from tests.support.pages.documented import ROOT

pytestmark = pytest.mark.timeout(300)
FACTS = yaml.safe_load((ROOT / "tests" / "recorded" / "gardener_monitoring.yaml").read_text())
PAGE = (ROOT / "docs" / "monitoring.md").read_text()
EXTENSIONS = ("extension-a", "extension-b")
SECONDS = 60.0
SENT = {rules.name: rules.spec["groups"][-1]["rules"] for rules in rules_of(EXTENSIONS[0])}
"""The alerts of a chart, by PrometheusRule."""
STACK = [
    {
        "source_matchers": ["severity=critical"],
        "target_matchers": ["severity=~warning|info"],
        "equal": ["namespace", "alertname"],
    },
    {
        "source_matchers": ["severity=warning"],
        "target_matchers": ["severity=info"],
        "equal": ["namespace", "alertname"],
    },
]
"""Inhibition in the values of kube-prometheus-stack, without that of alerts that only inhibit."""
CASES = [
    pytest.param("own", STACK, id="kube-prometheus-stack"),
    pytest.param("aggregate", FACTS["alertmanager"]["inhibit_rules"], id="gardener"),
]


def fired(rule, extension):
    """The alert of a rule, about an extension."""
    labels = {"alertname": rule["alert"], "extension": extension, **rule["labels"]}
    return {"labels": labels, "annotations": {}}


@pytest.mark.parametrize(("name", "inhibition"), CASES)
def test_no_alert_inhibits_one_of_another_extension(tmp_path, name, inhibition):
    route = {"route": {"receiver": "all"}, "receivers": [{"name": "all"}]}
    config = {**route, "inhibit_rules": inhibition}
    alerts = [fired(rule, extension) for rule in SENT[name] for extension in EXTENSIONS]
    with running_alertmanager(config, tmp_path / "alertmanager") as address:
        send(address, alerts)
        assert eventually(lambda: len(known(address)) == len(alerts), SECONDS)
        inhibited = [item["labels"] for item in known(address) if item["status"]["inhibitedBy"]]
        assert inhibited == []


PLAIN = "operators"
EMAIL = "email-kubernetes-ops"
STUCK, MORE = "ActuatorDeletionStuck", "ActuatorDeletionStuckMore"
SOON = {"group_wait": "1s", "group_interval": "1s"}


def shoot(name, state, cause="ERR_INFRA_UNAUTHORIZED"):
    """Six objects of a shoot."""
    return [Terminating(name, f"object-{number}", state, time.time(), cause) for number in range(6)]


def documented(receiver):
    """The route of the page, whose receivers are webhooks."""
    (text,) = [part for part in PAGE.split("```yaml\n") if part.startswith("route:")]
    config = yaml.safe_load(text.partition("```")[0])
    config["route"].update(SOON)
    names = [config["route"]["receiver"], *(item["receiver"] for item in config["route"]["routes"])]
    return {**config, "receivers": [webhook(receiver, name) for name in names]}


def of_gardener(receiver):
    """Gardener's configuration, in which a webhook is in the place of emails."""
    facts = FACTS["alertmanager"]
    soon = dict.fromkeys(SOON, f"{300_000 // FASTER}ms")
    email = webhook(receiver, EMAIL, send_resolved=False)
    return {
        "route": {**facts["route"], **soon},
        "inhibit_rules": facts["inhibit_rules"],
        "receivers": [{"name": "dev-null"}, email],
    }


@pytest.mark.parametrize(
    ("name", "configured", "page"), [("own", documented, PLAIN), ("aggregate", of_gardener, EMAIL)]
)
def test_an_alert_reaches_operators_unless_it_is_for_information(tmp_path, name, configured, page):
    alerts = [fired(rule, EXTENSIONS[0]) for rule in SENT[name]]
    with (
        receiving() as receiver,
        running_alertmanager(configured(receiver), tmp_path / "alertmanager") as address,
    ):
        send(address, alerts)
        assert eventually(lambda: len(known(address)) == len(alerts), SECONDS)
        for item in known(address):
            is_sent = {"name": page} in item["receivers"]
            assert is_sent == (item["labels"]["severity"] != "info"), item["labels"]


def prometheus_config(folder, files, scrapes, alertmanagers):
    """Write a configuration with these rule files; return its path."""
    folder.mkdir()
    for name, groups in files.items():
        (folder / f"{name}.rules").write_text(json.dumps({"groups": faster(groups)}))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "*.rules")],
        "scrape_configs": scrapes,
        "alerting": {"alertmanagers": alertmanagers},
    }
    (folder / "prometheus.json").write_text(json.dumps(config))
    return folder / "prometheus.json"


def target_of(address, action):
    """An Alertmanager that gets the alerts with labels for Gardener, or without."""
    about = {"source_labels": ["service"], "regex": "gardener-actuator", "action": action}
    static = [{"targets": [address]}]
    return {"static_configs": static, "alert_relabel_configs": [about]}


class World:
    """Two extensions in a seed, the first with a standby, under two jobs.

    The Prometheus of the seed has the rules of both charts, and another one federates it and
    evaluates all alerts again. Both send to Alertmanager, as far as Gardener's do.
    """

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.stuck: list[Terminating] = shoot("abandoned", TerminatingState.SKIPPED)
        self.receiver = stack.enter_context(receiving())
        self._stack = stack
        self._folder = folder
        plain = self._alertmanager("documented", documented(self.receiver))
        gardener = self._alertmanager("gardener", of_gardener(self.receiver))
        to_plain, to_gardener = target_of(plain, "drop"), target_of(gardener, "keep")
        rules = {
            name: {item.name: item.spec["groups"] for item in rules_of(name)} for name in EXTENSIONS
        }
        own = {name: found["own"] for name, found in rules.items()}
        again = {f"{name}-again": found["own"][1:] for name, found in rules.items()}
        aggregate = {f"{name}-aggregate": found["aggregate"] for name, found in rules.items()}
        at = stack.enter_context(seeds.served(self._replicas()))
        first = self._prometheus("seed", own, self._scrapes(at), [to_plain])
        second = {**again, **aggregate}
        federation = seeds.federation(first)
        self.servers = (
            first,
            self._prometheus("second", second, federation, [to_plain, to_gardener]),
        )

    def _replicas(self) -> dict[str, Metrics]:
        found = {}
        for name, extension in (("a", 0), ("standby", 0), ("b", 1)):
            found[name] = Metrics(extension=EXTENSIONS[extension])
            found[name].controller("infrastructure", "Infrastructure", 1)
            found[name].leader("lease", leading=name != "standby")
            mine = (lambda: list(self.stuck)) if name == "a" else list
            found[name].terminating.add("infrastructure", "Infrastructure", mine)
        return found

    @staticmethod
    def _scrapes(address: str) -> list[dict[str, object]]:
        static = [
            {
                "targets": [address],
                "labels": {"seed": "a-seed", "instance": name, "__metrics_path__": f"/{name}"},
            }
            for name in ("a", "standby", "b")
        ]
        return [{"job_name": job, "static_configs": static} for job in ("pods", "twice")]

    def _alertmanager(self, name, config):
        return self._stack.enter_context(running_alertmanager(config, self._folder / name))

    def _prometheus(self, name, files, scrapes, alertmanagers):
        config = prometheus_config(self._folder / name, files, scrapes, alertmanagers)
        return self._stack.enter_context(running_prometheus(config))

    def wait_for(self, query: str, value: float) -> None:
        """Wait until both Prometheus have this value."""
        for server in self.servers:
            eventually(lambda server=server: values(server, query) == [value], SECONDS)

    def wait_pages(self, receiver: str, expected: Sequence[list[str]]) -> None:
        """Wait until a receiver has got exactly these notifications about firing alerts."""
        eventually(lambda: self.receiver.pages(receiver) == list(expected), SECONDS)


def values(server, query):
    found = ask(server, "query", query=query)["result"]
    return [float(item["value"][1]) for item in found]


@pytest.fixture
def world(tmp_path):
    with ExitStack() as stack:
        yield World(stack, tmp_path)


def test_one_cause_has_one_notification_from_all_prometheuses(world):
    """A tenant's key is revoked, then that of another shoot; a shoot is given up by Gardener."""
    world.wait_for('seed:actuator_targets:count{extension="extension-a"}', 2)
    world.wait_for("sum(seed:actuator_stuck_shoots:sum)", 0)
    world.stuck += shoot("first", TerminatingState.GAVE_UP)
    world.wait_pages(PLAIN, [[STUCK]])
    world.wait_pages(EMAIL, [[STUCK]])
    world.wait_for(f"sum(seed:actuator_stuck_shoots:sum offset {3600 // FASTER}s)", 1)
    world.stuck += shoot("second", TerminatingState.GAVE_UP)
    world.wait_pages(PLAIN, [[STUCK], [MORE]])
    world.wait_pages(EMAIL, [[STUCK], [STUCK, MORE]])
    world.stuck.clear()
    assert eventually(lambda: world.receiver.resolved(PLAIN) == {STUCK, MORE}, SECONDS)
    assert world.receiver.pages(PLAIN) == [[STUCK], [MORE]]
    assert world.receiver.pages(EMAIL) == [[STUCK], [STUCK, MORE]]
    assert world.receiver.of("default") == []
