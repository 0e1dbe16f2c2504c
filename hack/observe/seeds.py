"""50 seeds in one Prometheus, under two jobs, and a second Prometheus that federates the first.

Each seed has the metrics of a manager, without a cluster. The numbers that both servers show have
to equal those counted here. Not here: deletions of a real manager (`play`).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from generic.serving.metrics import Metrics, Outcome, Terminating, TerminatingState

SEEDS = [f"seed-{number}" for number in range(50)]
_EXTENSION = "extension-observed"
_CAUSE = "ERR_INFRA_UNAUTHORIZED"
_ZERO = 8.0
"""Longer than the scrape interval."""
_QUERIES = {
    "deleted": 'sum by (seed) (seed:actuator_deletions:sum{outcome="deleted"})',
    "orphaned": 'sum by (seed) (seed:actuator_deletions:sum{outcome="orphaned"})',
    "stuck": f'sum by (seed) (seed:actuator_stuck_shoots:sum{{cause="{_CAUSE}"}})',
    "targets": "sum by (seed) (seed:actuator_targets:count)",
}

Numbers = Mapping[str, Mapping[str, float]]
"""By the name of a query: the value of each seed."""


class CountedSeed:
    """The metrics of the extension in one seed, and the numbers that were counted."""

    def __init__(self, number: int) -> None:
        self.deleted = number + 1
        self.orphaned = number % 7
        self.stuck = number % 3
        self.metrics = Metrics(extension=_EXTENSION, zero_seconds=_ZERO)
        self._bound = self.metrics.controller("infrastructure", "Infrastructure", 1)
        found = [
            Terminating(f"shoot-{shoot}", "infra", TerminatingState.GAVE_UP, 0.0, _CAUSE)
            for shoot in range(self.stuck)
        ]
        self.metrics.terminating.add("infrastructure", "Infrastructure", lambda: found)

    def count(self) -> None:
        for _ in range(self.deleted):
            self._bound.released(Outcome.DELETED, 1.0)
        for _ in range(self.orphaned):
            self._bound.released(Outcome.ORPHANED, 1.0)


@contextmanager
def served(metrics: Mapping[str, Metrics]) -> Iterator[str]:
    """Serve each of the metrics at /NAME while the context is open; return the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, kind = metrics[self.path.strip("/")].expose()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def made() -> dict[str, CountedSeed]:
    """Return the seeds, before anything is counted."""
    return {name: CountedSeed(number) for number, name in enumerate(SEEDS)}


def scrapes(address: str) -> list[dict[str, object]]:
    """Return scrape configurations: each seed under two jobs, and every seed at one instance."""
    targets = [
        {"targets": [address], "labels": {"seed": seed, "__metrics_path__": f"/{seed}"}}
        for seed in SEEDS
    ]
    return [
        {
            "job_name": job,
            "scrape_interval": "3s",
            "scrape_timeout": "3s",
            "static_configs": targets,
        }
        for job in ("extension", "twice")
    ]


def federation(address: str) -> list[dict[str, object]]:
    """Return the scrape configuration of the second Prometheus."""
    return [
        {
            "job_name": "federate",
            "honor_labels": True,
            "metrics_path": "/federate",
            "params": {"match[]": ['{__name__=~"seed:actuator_.+"}']},
            "static_configs": [{"targets": [address]}],
        }
    ]


def expected(seeds: Mapping[str, CountedSeed]) -> Numbers:
    """Return the numbers as they were counted here."""
    return {
        "deleted": {name: float(seed.deleted) for name, seed in seeds.items()},
        "orphaned": {name: float(seed.orphaned) for name, seed in seeds.items()},
        "stuck": {name: float(seed.stuck) for name, seed in seeds.items() if seed.stuck},
        "targets": dict.fromkeys(seeds, 1.0),
    }


def wait_shown(
    ask: Callable[[str], list[dict[str, Any]]], wanted: Numbers, seconds: float
) -> tuple[bool, str]:
    """Wait until a Prometheus shows the numbers; return whether it does, and the difference."""
    until = time.monotonic() + seconds
    while True:
        shown = {name: _by_seed(ask(query)) for name, query in _QUERIES.items()}
        wrong = [
            f"{name} of {seed}: {shown[name].get(seed)}, not {value:g}"
            for name, values in wanted.items()
            for seed, value in values.items()
            if shown[name].get(seed) != value
        ]
        if not wrong or time.monotonic() > until:
            total = sum(map(len, wanted.values()))
            return not wrong, "; ".join(wrong[:2]) or f"{total} numbers are equal"
        time.sleep(1.0)


def _by_seed(found: list[dict[str, Any]]) -> dict[str, float]:
    return {sample["metric"].get("seed", ""): float(sample["value"][1]) for sample in found}
