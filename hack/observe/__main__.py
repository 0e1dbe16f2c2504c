"""`make observe`: check every panel and alert with a real Prometheus that scraped deletions.

It runs an embedded cluster, a manager behind a fault proxy, deletions of every outcome, and a
Prometheus that scrapes the manager; it prints a table. Exit status 1 if a query returned nothing, a
rule is not healthy, or the counts do not add up.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
import urllib3
from rich.console import Console
from rich.table import Table
from rich.text import Text

from actuator.errors import ActuatorError, ApiError
from actuator.interface import Resource
from actuator.meta import Raw
from actuator.v1alpha1 import KINDS
from actuator.v1alpha1 import Cluster as ClusterKind
from generic.controller.metrics import Outcome
from generic.controller.watch import owns
from generic.kube.client import HttpClient, connect
from generic.library.machines import MACHINE_KINDS
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.orphans import Orphan
from generic.testing.envtest import Environment, EnvtestError
from generic.testing.envtest.servers import free_port
from generic.testing.faults import FaultProxy
from generic.testing.seed import install
from generic.tools.monitoring import GROUPS, dashboard_files, rule_file
from hack.observe import play
from hack.observe.programs import find_program
from hack.processes import running


@attrs.frozen
class Prometheus:
    """The used part of its HTTP API."""

    url: str
    _http: urllib3.PoolManager = attrs.field(factory=urllib3.PoolManager)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """Evaluate the expression now. Raises ActuatorError if it is invalid."""
        found = self._get("query", {"query": expr})["result"]
        if isinstance(found, list):
            return [one for one in found if isinstance(one, dict)]
        return []

    def rules(self) -> list[dict[str, Any]]:
        """Return each rule with its health, and the state of alerts."""
        groups = self._get("rules", {})["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, what: str, fields: dict[str, str]) -> Any:
        answer = self._http.request("GET", f"{self.url}/api/v1/{what}", fields=fields, timeout=10.0)
        body = json.loads(answer.data)
        if body["status"] != "success":
            raise ActuatorError(f"Prometheus refuses {fields}: {body.get('error')}")
        return body["data"]


@contextmanager
def prometheus(program: Path, folder: Path, port: int, target: str) -> Iterator[Prometheus]:
    """Run Prometheus while the context is open. Raises ActuatorError if it is not ready."""
    (folder / "rules.json").write_text(json.dumps(rule_file(GROUPS)))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.json"],
        "scrape_configs": [
            {"job_name": "extension", "static_configs": [{"targets": [target]}]},
        ],
    }
    written = folder / "prometheus.json"
    written.write_text(json.dumps(config))
    address = f"127.0.0.1:{port}"
    command = [
        *(str(program), f"--config.file={written}", f"--storage.tsdb.path={folder / 'data'}"),
        *(f"--web.listen-address={address}", "--log.level=warn"),
    ]
    with running(command, folder / "prometheus.log", address, "/-/ready"):
        yield Prometheus(f"http://{address}")


_BUDGET = 5.0
_SCRAPES = 12.0
"""Seconds in which Prometheus scrapes the current state."""
_GRAFANA = {
    "$__rate_interval": "2m",
    "$__interval": "5m",
    "$__range": "10m",
    "$job": ".+",
    "$controller": ".+",
    "$kind": ".+",
}
_AT_ONCE = frozenset(
    {
        "ActuatorResourcesOrphaned",
        "ActuatorDeletionBypassed",
        "ActuatorForceDeletionsOverBudget",
        "ActuatorSeedFinalizersStripped",
    }
)
"""Alerts without `for`, which must fire here; promtool tests the others (`tests/rules`)."""


@attrs.frozen
class Row:
    """A row of the table."""

    where: str
    what: str
    query: str
    said: str
    good: bool


@contextmanager
def _manager(kubeconfig: Path, address: str) -> Iterator[Manager]:
    """Run a manager while the context is open; it serves its metrics at the address."""
    options = Options(
        kubeconfig=kubeconfig,
        metrics_bind_address=address,
        health_bind_address="0",
        leader_election=True,
        heartbeat_namespace="default",
        heartbeat_renew_interval_seconds=5,
        force_delete_budget=_BUDGET,
        metrics_oldest_terminating=5,
        shutdown_timeout=2.0,
    )
    manager = Manager(options)
    absent = owns(Resource("example.org/v1", "absent"))  # has no CRD, which a panel shows
    manager.add(play.Plays(), type=play.TYPE, escalations=[play.GIVES_UP], watches=[absent])
    manager.start()
    try:
        if not manager.wait_synced():
            raise ActuatorError("the caches of the manager are not filled")
        yield manager
    finally:
        manager.stop()


def main() -> None:
    """Run the deletions and the queries; print the table."""
    say = Console(stderr=True).print
    try:
        rows = _observe(say)
    except (ActuatorError, ApiError, EnvtestError, TimeoutError) as error:
        say(f"Error: {error}")
        sys.exit(1)
    Console(width=170).print(_table(rows))
    bad = [row for row in rows if not row.good]
    print(f"{len(rows) - len(bad)} of {len(rows)} are as they should be")
    sys.exit(1 if bad else 0)


def _observe(say: Callable[[str], None]) -> list[Row]:
    program = find_program("prometheus", say)
    address = f"127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="observe-")))
        say("Starting the embedded cluster")
        environment = stack.enter_context(Environment(say))
        install(environment, [*KINDS, ClusterKind, Orphan, *MACHINE_KINDS])
        way = stack.enter_context(FaultProxy(environment.kubeconfig, folder))
        say("Starting Prometheus")
        server = stack.enter_context(prometheus(program, folder, free_port(), address))
        with _manager(way.kubeconfig, address) as manager:
            _play(connect(environment.kubeconfig), way, say)
            counts = _sums(manager)
        with _manager(way.kubeconfig, address):  # restarted, because it counts Orphans at its start
            time.sleep(_SCRAPES)
            return [*_panels(server), *_alerts(server), counts]


def _play(admin: HttpClient, way: FaultProxy, say: Callable[[str], None]) -> None:
    time.sleep(_SCRAPES)  # Prometheus must scrape the initial 0
    play.delete(admin, way, say)
    time.sleep(_SCRAPES)
    say("Force-deleting what is stuck")
    play.force(admin)
    time.sleep(_SCRAPES)


def _sums(manager: Manager) -> Row:
    """Check that final outcomes and externally removed finalizers add up to all objects."""
    ended = manager.metrics.total("actuator_deletions_total", "outcome")
    final = sum(ended[outcome.value] for outcome in Outcome if outcome.final)
    bypassed = sum(manager.metrics.total("actuator_deletions_bypassed_total", "kind").values())
    said = f"{final} final outcomes and {bypassed} bypassed, of {len(play.NAMES)} objects"
    return Row("sum", "Objects that went", "", said, final + bypassed == len(play.NAMES))


def _panels(server: Prometheus) -> Iterator[Row]:
    for board in map(json.loads, dashboard_files().values()):
        for panel in board["panels"]:
            for target in panel.get("targets", ()):  # rows have none
                expr = target["expr"]
                for variable, value in _GRAFANA.items():
                    expr = expr.replace(variable, value)
                found = server.query(expr)
                yield Row(board["title"], panel["title"], target["expr"], _said(found), bool(found))


def _said(found: Sequence[Raw]) -> str:
    if not found:
        return "nothing"
    values = ", ".join(str(one["value"][1])[:7] for one in found[:3])
    return f"{len(found)} series: {values}{', …' if len(found) > 3 else ''}"


def _alerts(server: Prometheus) -> Iterator[Row]:
    """Yield a row for each rule: it must be healthy, and an alert without `for` must fire."""
    for rule in server.rules():
        healthy = rule["health"] == "ok"
        if rule["type"] != "alerting":
            yield Row("recorded", rule["name"], rule["query"], rule["health"], healthy)
            continue
        fires = rule["state"] == "firing" or rule["name"] not in _AT_ONCE
        said = f"{rule['state']}, {rule['health']}"
        yield Row("alert", rule["name"], rule["query"], said, fires and healthy)


def _table(rows: Sequence[Row]) -> Table:
    table = Table("where", "what", "query", "returned", "")
    table.columns[2].overflow = "ellipsis"
    table.columns[2].no_wrap = True
    table.columns[2].max_width = 70
    for row in rows:
        verdict = Text("ok", style="green") if row.good else Text("FAILS", style="bold red")
        table.add_row(row.where, row.what, Text(row.query), row.said, verdict)
    return table


if __name__ == "__main__":
    main()
