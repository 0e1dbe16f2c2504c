"""`make observe`: check every panel and alert with a real Prometheus that scraped deletions.

It runs an embedded cluster, a manager behind a fault proxy, deletions of every outcome, and a
Prometheus that scrapes the manager, then 50 seeds and a second Prometheus that federates them; it
prints a table. Exit status 1 if a query returned nothing, a rule is not healthy, or numbers differ
from those counted here.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from actuator.errors import ActuatorError, ApiError
from actuator.interface import Resource
from actuator.meta import Raw
from actuator.v1alpha1 import KINDS, Cluster
from generic.controller.watch import owns
from generic.kube.client import connect
from generic.library.machines import MACHINE_KINDS
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.orphans import RECORD_KINDS
from generic.serving.metrics import Outcome
from generic.testing.envtest import Environment, EnvtestError
from generic.testing.envtest.servers import free_port
from generic.testing.seed import install
from generic.tools.monitoring import ALERTS_GROUP, GROUPS, boards, rule_file
from hack.faults import FaultProxy
from hack.observe import play, seeds
from hack.observe.programs import find_program
from hack.processes import running


def ask(address: str, what: str, **fields: str) -> Any:
    """Return what Prometheus's HTTP API answers. Raises ActuatorError if it refuses."""
    url = f"http://{address}/api/v1/{what}?{urlencode(fields)}"
    try:
        with urlopen(url, timeout=10.0) as answer:
            return json.load(answer)["data"]
    except HTTPError as error:
        raise ActuatorError(f"Prometheus refuses {fields}: {error.read().decode()}") from error


@contextmanager
def prometheus(
    program: Path, folder: Path, scrapes: Sequence[Raw], groups: Sequence[Raw] = GROUPS
) -> Iterator[str]:
    """Run Prometheus while the context is open; return its address.

    Raises ActuatorError if it is not ready.
    """
    folder.mkdir(exist_ok=True)
    (folder / "rules.json").write_text(json.dumps(rule_file(groups)))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.json"],
        "scrape_configs": scrapes,
    }
    written = folder / "prometheus.json"
    written.write_text(json.dumps(config))
    address = f"127.0.0.1:{free_port()}"
    command = [
        *(str(program), f"--config.file={written}", f"--storage.tsdb.path={folder / 'data'}"),
        *(f"--web.listen-address={address}", "--log.level=warn"),
    ]
    with running(command, folder / "prometheus.log", address, "/-/ready"):
        yield address


_say = partial(print, file=sys.stderr)
_BUDGET = 5.0
_PATIENCE = 60.0
_SCRAPES = 12.0
"""Seconds in which Prometheus scrapes the current state."""
_GRAFANA = {
    "$__rate_interval": "2m",
    "$__interval": "5m",
    "$period:1h": "10m:5s",
    "$period": "10m",
    "$seed": ".*",
    "$extension": ".+",
    "$controller": ".+",
    "$kind": ".+",
}


Row = tuple[bool, str, str, str, str]
"""Whether the result is as expected, the place and name of a query, its result, and its text."""


@contextmanager
def _manager(kubeconfig: Path, address: str) -> Iterator[Manager]:
    """Run a manager while the context is open; it serves its metrics at the address."""
    port = free_port()
    options = Options(
        kubeconfig=kubeconfig,
        metrics_bind_address=address,
        health_bind_address="0",
        leader_election=True,
        heartbeat_namespace="default",
        heartbeat_renew_interval_seconds=5,
        force_delete_budget=_BUDGET,
        metrics_oldest_terminating=5,
        metrics_zero_seconds=3.0,
        shutdown_timeout=2.0,
        webhook_config_mode="url",
        webhook_config_url=f"127.0.0.1:{port}",
        webhook_config_server_port=port,
    )
    manager = Manager(options)
    absent = owns(Resource("example.org/v1", "absent"))  # has no CRD, which a panel shows
    manager.add(play.Plays(), type=play.TYPE, give_up_after=play.GIVES_UP, watches=[absent])
    manager.add_webhooks(play.refuse)
    manager.start()
    try:
        if not manager.wait_synced():
            raise ActuatorError("the caches of the manager are not filled")
        yield manager
    finally:
        manager.stop()


def main() -> None:
    """Run the deletions and the queries; print the table."""
    try:
        rows = _observe()
    except (ActuatorError, ApiError, EnvtestError, TimeoutError) as error:
        sys.exit(f"Error: {error}")
    for is_good, where, what, said, query in rows:
        verdict = "ok" if is_good else "FAILS"
        print(f"{verdict:<6}{where:<22}{what:<36}{said:<40}{query[:60]}")
    good = sum(row[0] for row in rows)
    print(f"{good} of {len(rows)} are as they should be")
    sys.exit(good != len(rows))


def _observe() -> list[Row]:
    program = find_program("prometheus", _say)
    address = f"127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="observe-")))
        _say("Starting the embedded cluster")
        environment = stack.enter_context(Environment(_say))
        install(environment, [*KINDS, Cluster, *RECORD_KINDS, *MACHINE_KINDS])
        way = stack.enter_context(FaultProxy(environment.kubeconfig, folder))
        _say("Starting Prometheus")
        scrape = {"job_name": "extension", "static_configs": [{"targets": [address]}]}
        server = stack.enter_context(prometheus(program, folder, [scrape]))
        with _manager(way.kubeconfig, address) as manager:
            time.sleep(_SCRAPES)  # Prometheus must scrape the initial 0
            admin = connect(environment.kubeconfig)
            play.delete(admin, way, _say)
            time.sleep(_SCRAPES)
            _say("Force-deleting what is stuck")
            play.force(admin, way)
            time.sleep(_SCRAPES)
            counts = _sums(manager)
        with _manager(way.kubeconfig, address):  # restarted, because it counts Orphans at its start
            time.sleep(_SCRAPES)
            play.be_denied(admin)
            play.give_up(admin)
            time.sleep(_SCRAPES)
            return [*_panels(server), *_alerts(server), counts, *_landscape(program, folder)]


def _landscape(program: Path, folder: Path) -> Iterator[Row]:
    """Yield a row for the Prometheus of 50 seeds, and one for another that federates it."""
    made = seeds.made()
    _say("50 seeds, and a second Prometheus")
    with ExitStack() as stack:
        address = stack.enter_context(
            seeds.served({name: seed.metrics for name, seed in made.items()})
        )
        first = prometheus(program, folder / "seeds", seeds.scrapes(address))
        server = stack.enter_context(first)
        second = prometheus(
            program, folder / "federation", seeds.federation(server), [ALERTS_GROUP]
        )
        federating = stack.enter_context(second)
        time.sleep(_SCRAPES)  # Prometheus must scrape the initial 0
        for seed in made.values():
            seed.count()
        for where, at in (("50 seeds", server), ("federation", federating)):
            query = partial(_query, at)
            is_good, said = seeds.wait_shown(query, seeds.expected(made), _PATIENCE)
            yield is_good, where, "Numbers of each seed", said, ""


def _query(server: str, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(server, "query", query=query)["result"]
    return found


def _sums(manager: Manager) -> Row:
    """Check that final outcomes and externally removed finalizers add up to all objects."""
    ended = manager.metrics.total("actuator_deletions_total", "outcome")
    final = sum(ended[outcome.value] for outcome in Outcome if outcome.final)
    removed = sum(
        manager.metrics.total("actuator_finalizers_removed_externally_total", "kind").values()
    )
    said = f"{final} final outcomes and {removed} removed externally, of {len(play.NAMES)} objects"
    return final + removed == len(play.NAMES), "sum", "Objects that went", said, ""


def _panels(server: str) -> Iterator[Row]:
    for board in boards().values():
        for panel in board["panels"]:
            for target in panel.get("targets", ()):  # rows have none
                expr = target["expr"]
                for variable, value in _GRAFANA.items():
                    expr = expr.replace(variable, value)
                found = ask(server, "query", query=expr)["result"]
                values = ", ".join(str(item["value"][1])[:7] for item in found[:3])
                said = f"{len(found)} series: {values}"
                yield bool(found), board["title"], panel["title"], said, target["expr"]


def _alerts(server: str) -> Iterator[Row]:
    """Yield a row for each rule: it must be healthy, and an alert without `for` must fire.

    A burn rate needs the events of hours. promtool tests the other alerts (`tests/rules`).
    """
    for group in ask(server, "rules")["groups"]:
        for rule in group["rules"]:
            state = rule.get("state", "recorded")  # only alerts have one
            waits = rule.get("duration", 1) > 0 or "_objective_burn:" in rule["query"]
            is_good = rule["health"] == "ok" and (waits or state == "firing")
            yield is_good, rule["type"], rule["name"], f"{state}, {rule['health']}", rule["query"]


if __name__ == "__main__":
    main()
