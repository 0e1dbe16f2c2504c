"""The benchmark: our manager beside controller-runtime making the Go library's calls.

    python -m hack.bench.run [--quick] [--only speed|metrics|memory|webhooks]

docs/bench.md explains the figures. Exit status 1 if a figure is out of bounds.
"""

import argparse
import logging
import operator
import re
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import attrs

from actuator.errors import ActuatorError
from generic.kube.client import connect
from generic.testing.envtest import Environment, EnvtestError
from hack.bench import admission
from hack.bench.counting import FAMILY, seconds_per_call
from hack.bench.sides import WORKERS, BenchSide, Process, ours, peer
from hack.bench.world import BenchWorld
from hack.processes import wait

_NAMESPACES = 10
_SETTLE = 1.0
_SCRAPES = 9
_PARTS = ("speed", "metrics", "memory", "webhooks")
_SIGNS = {"<=": operator.le, ">=": operator.ge}
_progress = partial(print, flush=True)

Gate = tuple[str, float, str, float]
"""Title, figure, sign and bound."""
Figures = Mapping[str, float]
"""The result of one run of one side, by the names in `_FORMATS`."""
_FORMATS = {
    "reconciles/s": ".0f",
    "force deletions/s": ".0f",
    "requests per object": ".2f",
    "CPU seconds": ".2f",
    "RSS MiB": ".0f",
}


@attrs.frozen(kw_only=True)
class Size:
    """The number of runs and objects."""

    runs: int
    objects: int
    cached: int
    admitted: int


_QUICK = Size(runs=1, objects=100, cached=500, admitted=100)
_WHOLE = Size(runs=9, objects=500, cached=10_000, admitted=1_000)


@attrs.frozen
class Bench:
    """One embedded cluster, and the parts of the benchmark, which share it."""

    world: BenchWorld
    kubeconfig: Path
    logs: Path
    size: Size

    def speed(self) -> list[Gate]:
        """Compare lives of new objects, in alternating runs of both sides."""
        runs = self.size.runs
        sides = (ours(), peer(_progress))
        figures: dict[str, list[Figures]] = {side.name: [] for side in sides}
        for run in range(runs):
            for side in sides if run % 2 == 0 else sides[::-1]:
                name = f"{side.name}-{run}"
                with self._running(side, name) as process:
                    found = self._live(process, name)
                figures[side.name].append(found)
                texts = [f"{found[name]:{form}} {name}" for name, form in _FORMATS.items()]
                _progress(f"{side.name} {run + 1}/{runs}: {', '.join(texts)}")
        medians = {
            name: [statistics.median(item[name] for item in found) for found in figures.values()]
            for name in _FORMATS
        }
        print(f"\n{self.size.objects} Infrastructures, {WORKERS} workers,", end=" ")
        print(f"median of {runs} alternating runs")
        _print_table({name: (a, b, _FORMATS[name]) for name, (a, b) in medians.items()})
        ratios = {name: left / right for name, (left, right) in medians.items()}
        return [
            ("requests per object", medians["requests per object"][0], "<=", 3.1),
            ("reconciles/s, ratio", ratios["reconciles/s"], ">=", 1.5),
            # Ours also writes a ForceDeletionRecord for each object.
            ("force deletions/s, ratio", ratios["force deletions/s"], ">=", 1.5),
            ("CPU seconds, ratio", ratios["CPU seconds"], "<=", 0.6),
        ]

    def metrics(self) -> list[Gate]:
        """Compare the cost of metrics (calls times duration of one) with the total CPU time."""
        with self._running(ours(), "uncounted") as process:
            cpu = self._live(process, "uncounted")["CPU seconds"]
        with self._running(ours("counting"), "counting") as process:
            self._live(process, "counting")
            text = process.scrape()
        passes = _sum(text, "controller_runtime_reconcile_total{.*}")
        spent = 0.0
        print(f"\n{self.size.objects} Infrastructures, {passes:.0f} passes")
        for name, seconds in seconds_per_call().items():
            count = _sum(text, f'{FAMILY}_total{{call="{name}".*}}')
            spent += count * seconds
            print(f"{name:<22}{count / passes:>8.2f} a pass, {seconds * 1e6:.2f} µs each")
        print(f"{spent / passes * 1e6:.1f} µs of {cpu / passes * 1e6:.0f} µs CPU a pass")
        return [("metrics, % of the CPU", 100 * spent / cpu, "<=", 3.0)]

    def memory(self) -> list[Gate]:
        """Measure our side with many objects that exist before it starts, then deleted ones."""
        world = self.world
        objects = self.size.cached
        keys = [(f"shoot--memory--{number}", "bench") for number in range(objects)]
        started = time.monotonic()
        world.create_shoots([namespace for namespace, _ in keys])
        world.create(keys)
        _progress(f"created {objects} shoots in {time.monotonic() - started:.0f} s")
        with self._running(ours(), "memory") as process:
            world.wait_succeeded(keys)
            time.sleep(_SETTLE)
            resident = process.resident_mib()
            peak = process.resident_mib("VmHWM")
            cached = _scrape_ms(process)
        print(f"\n{objects} Infrastructures and Clusters of 3 KB: {resident:.0f} MiB")
        world.delete([namespace for namespace, _ in keys])
        with self._running(ours("pending"), "pending") as process:
            pending = 'actuator_operations_total{.*operation="delete",result="pending"}'
            done = f"all of {objects} deletions waiting"
            wait(done, lambda: _sum(process.scrape(), pending) >= objects, 300, every=_SETTLE)
            deleting = _scrape_ms(process)
        return [
            (f"peak MiB with {objects} shoots", peak, "<=", 130.0),
            (f"ms a scrape with {objects} objects", cached, "<=", 100.0),
            ("ms a scrape, all of them under deletion", deleting, "<=", 200.0),
        ]

    def webhooks(self) -> list[Gate]:
        """Compare the latencies that both webhook servers add; show the throughput of ours."""
        folder = self.logs / "webhooks"
        folder.mkdir()
        client = self.world.client
        requests = self.size.admitted
        added, direct = admission.added_ms(client, self.kubeconfig, folder, requests)
        print("\nadded ms a request")
        _print_table({name: (ms["ours"], ms["peer"], ".2f") for name, ms in added.items()})
        for count, rate in enumerate(direct, 1):
            print(f"without API server, {count} of our processes: {rate:.0f} reviews/s")
        p99 = added["p99"]
        return [("added ms a request, p99, ratio", p99["ours"] / p99["peer"], "<=", 2.0)]

    def _running(self, side: BenchSide, run: str) -> AbstractContextManager[Process]:
        return side.running(self.kubeconfig, self.logs / f"{run}.log")

    def _live(self, process: Process, run: str) -> Figures:
        """Run one life of new objects: create, reconcile, force-delete."""
        world = self.world
        objects = self.size.objects
        shoots = [f"shoot--{run}--{number}" for number in range(_NAMESPACES)]
        keys = [(shoots[n % _NAMESPACES], f"bench-{n}") for n in range(objects)]
        world.create_shoots(shoots)
        time.sleep(_SETTLE)
        requests = world.requests()
        cpu = process.cpu_seconds()
        reconciled = _seconds(partial(world.create, keys), partial(world.wait_succeeded, keys))
        world.confirm(keys)
        world.force(shoots)
        time.sleep(_SETTLE)
        forced = _seconds(partial(world.delete, shoots), partial(world.wait_gone, keys))
        time.sleep(_SETTLE)
        driver = 2 * objects + len(shoots)  # create, confirm; delete
        return {
            "reconciles/s": objects / reconciled,
            "force deletions/s": objects / forced,
            "requests per object": (world.requests() - requests - driver) / objects,
            "CPU seconds": process.cpu_seconds() - cpu,
            "RSS MiB": process.resident_mib(),
        }


def _sum(text: str, pattern: str) -> float:
    """Return the sum of all samples of an exposition whose name and labels match."""
    return sum(float(value) for value in re.findall(rf"^{pattern} (\S+)$", text, re.MULTILINE))


def _scrape_ms(process: Process) -> float:
    """Return the median milliseconds of several scrapes."""
    return statistics.median(timeit.repeat(process.scrape, number=1, repeat=_SCRAPES)) * 1000


def _seconds(act: Callable[[], None], wait: Callable[[], float]) -> float:
    """Return the seconds from the driver's first request to the last object's outcome."""
    started = time.monotonic()
    act()
    return wait() - started


def _print_table(rows: Mapping[str, tuple[float, float, str]]) -> None:
    """Print our figure, the peer's and their ratio; the rows have the format of the figures."""
    print(f"{'':<22}{'ours':>10}{'peer':>10}{'ratio':>10}")
    for name, (left, right, form) in rows.items():
        print(f"{name:<22}{left:>10{form}}{right:>10{form}}{left / right:>10.2f}")


def main() -> int:
    """Run the selected parts; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one run of few objects: a smoke test")
    parser.add_argument("--only", choices=_PARTS, help="one part of it")
    args = parser.parse_args()
    logging.getLogger("generic").setLevel(logging.CRITICAL)  # the driver's watch ends with errors
    gates: list[Gate] = []
    with Environment(_progress) as environment, tempfile.TemporaryDirectory() as logs:
        world = BenchWorld(connect(environment.kubeconfig))
        bench = Bench(world, environment.kubeconfig, Path(logs), _QUICK if args.quick else _WHOLE)
        for part in [args.only] if args.only else _PARTS:
            gates += getattr(bench, part)()
    print()
    verdicts = [_SIGNS[sign](figure, bound) for _, figure, sign, bound in gates]
    for (title, figure, sign, bound), kept in zip(gates, verdicts, strict=True):
        print(f"{title:<42}{figure:>9.2f}  {sign} {bound:<6}{'ok' if kept else 'FAIL'}")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ActuatorError, EnvtestError) as error:
        sys.exit(f"bench: {error}")
