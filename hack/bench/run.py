"""The benchmark: our manager beside controller-runtime making the Go library's calls.

    python hack/bench/run.py [--quick] [--only speed|metrics|memory|webhooks]

docs/bench.md explains the figures. Exit status 1 if a figure is out of bounds.
"""

import argparse
import operator
import re
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import admission
import attrs
from counting import FAMILY, WRAPPED, seconds_per_call
from sides import WORKERS, Process, Side, ours, peer
from world import Key, Watch, World

from actuator.errors import ActuatorError
from generic.kube.client import connect
from generic.testing.envtest import Environment, EnvtestError
from hack.processes import wait

_NAMESPACES = 10
_SETTLE = 1.0
_SCRAPES = 9
_progress = partial(print, flush=True)

Figures = Mapping[str, float]
"""The result of one run of one side, by the names in `_FORMATS`."""
_FORMATS = {
    "reconciles/s": ".0f",
    "force deletions/s": ".0f",
    "requests per object": ".2f",
    "CPU seconds": ".2f",
    "RSS MiB": ".0f",
}


@attrs.frozen
class Gate:
    """A bound for a figure."""

    title: str
    figure: float
    keeps: Callable[[float, float], bool]
    bound: float

    def report(self) -> bool:
        """Print the line; return whether the bound is kept."""
        kept = self.keeps(self.figure, self.bound)
        sign = "<=" if self.keeps is operator.le else ">="
        verdict = "ok" if kept else "FAIL"
        print(f"{self.title:<42}{self.figure:>9.2f}  {sign} {self.bound:<6}{verdict}")
        return kept


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
    """One embedded cluster, shared by all runs."""

    world: World
    watch: Watch
    kubeconfig: Path
    logs: Path

    def measure(self, side: Side, run: str, objects: int) -> Figures:
        """Run one life of new objects with a new process."""
        with side.running(self.kubeconfig, self.logs / f"{run}.log") as process:
            return self.live(process, run, objects)

    def live(self, process: Process, run: str, objects: int) -> Figures:
        """Run one life of new objects: create, reconcile, force-delete."""
        shoots = [f"shoot--{run}--{number}" for number in range(_NAMESPACES)]
        keys = [(shoots[n % _NAMESPACES], f"bench-{n}") for n in range(objects)]
        self.world.create_shoots(shoots)
        time.sleep(_SETTLE)
        requests, cpu = self.world.requests(), process.cpu_seconds()
        reconciled = _clock(lambda: self.world.create(keys), self.watch.wait_succeeded, keys)
        self.world.confirm(keys)
        self.world.force(shoots)
        time.sleep(_SETTLE)
        forced = _clock(lambda: self.world.delete(keys), self.watch.wait_gone, keys)
        time.sleep(_SETTLE)
        driver = 3 * objects  # create, confirm, delete
        return {
            "reconciles/s": objects / reconciled,
            "force deletions/s": objects / forced,
            "requests per object": (self.world.requests() - requests - driver) / objects,
            "CPU seconds": process.cpu_seconds() - cpu,
            "RSS MiB": process.resident_mib(),
        }

    def count_metric_calls(self, objects: int) -> tuple[dict[str, float], float]:
        """Return the calls of metrics in one life of the objects, by operation; and reconciles."""
        with ours("counting").running(self.kubeconfig, self.logs / "counting.log") as process:
            self.live(process, "counting", objects)
            text = process.scrape()
        calls = {name: _sum(text, f'{FAMILY}_total{{call="{name}"}}') for name in WRAPPED}
        return calls, _sum(text, "controller_runtime_reconcile_total{.*}")

    def fill(self, objects: int) -> list[Key]:
        """Create shoots with one object each."""
        keys = [(f"shoot--memory--{number}", "bench") for number in range(objects)]
        started = time.monotonic()
        self.world.create_shoots([namespace for namespace, _ in keys])
        self.world.create(keys)
        print(f"created {objects} shoots in {time.monotonic() - started:.0f} s", flush=True)
        return keys

    def measure_cached(self, keys: Sequence[Key]) -> tuple[float, float, float]:
        """Return MiB now and at most, and ms of a scrape, once our side has reconciled all."""
        with ours().running(self.kubeconfig, self.logs / "memory.log") as process:
            self.watch.wait_succeeded(keys)
            time.sleep(_SETTLE)
            resident, peak = process.resident_mib(), process.resident_mib(peak=True)
            return resident, peak, _scrape_ms(process)

    def measure_deleting(self, keys: Sequence[Key]) -> float:
        """Return the milliseconds of a scrape while all these deletions are pending."""
        self.world.delete(keys)
        with ours("pending").running(self.kubeconfig, self.logs / "pending.log") as process:
            pending = 'actuator_operations_total{.*operation="delete",result="pending"}'
            done = f"all of {len(keys)} deletions waiting"
            wait(done, lambda: _sum(process.scrape(), pending) >= len(keys), 300, every=_SETTLE)
            return _scrape_ms(process)


def _sum(text: str, pattern: str) -> float:
    """Return the sum of all samples of an exposition whose name and labels match."""
    return sum(float(value) for value in re.findall(rf"^{pattern} (\S+)$", text, re.MULTILINE))


def _scrape_ms(process: Process) -> float:
    """Return the median milliseconds of several scrapes."""
    return statistics.median(timeit.repeat(process.scrape, number=1, repeat=_SCRAPES)) * 1000


def _clock(
    act: Callable[[], None], wait: Callable[[Sequence[Key]], float], keys: Sequence[Key]
) -> float:
    """Return the seconds from the driver's first request to the last object's outcome."""
    started = time.monotonic()
    act()
    return wait(keys) - started


def _median(runs: Sequence[Figures]) -> Figures:
    return {name: statistics.median(run[name] for run in runs) for name in _FORMATS}


def _print_table(medians: Mapping[str, Figures], runs: int, objects: int) -> None:
    left, right = medians["ours"], medians["peer"]
    print(f"\n{objects} Infrastructures, {WORKERS} workers, median of {runs} alternating runs")
    print(f"{'':<22}{'ours':>10}{'peer':>10}{'ratio':>10}")
    for name, form in _FORMATS.items():
        a, b = left[name], right[name]
        print(f"{name:<22}{a:>10{form}}{b:>10{form}}{a / b:>10.2f}")


def _speed_gates(medians: Mapping[str, Figures]) -> list[Gate]:
    left, right = medians["ours"], medians["peer"]
    ratios = {name: left[name] / right[name] for name in _FORMATS}
    return [
        Gate("requests per object", left["requests per object"], operator.le, 3.1),
        Gate("reconciles/s, ratio", ratios["reconciles/s"], operator.ge, 1.5),
        Gate("force deletions/s, ratio", ratios["force deletions/s"], operator.ge, 2.0),
        Gate("CPU seconds, ratio", ratios["CPU seconds"], operator.le, 0.6),
    ]


def _run_speed(bench: Bench, size: Size) -> list[Gate]:
    runs, objects = size.runs, size.objects
    sides = (ours(), peer(_progress))
    figures: dict[str, list[Figures]] = {side.name: [] for side in sides}
    for run in range(runs):
        for side in sides if run % 2 == 0 else sides[::-1]:
            figures[side.name].append(bench.measure(side, f"{side.name}-{run}", objects))
            print(f"{side.name} {run + 1}/{runs}: {_describe(figures[side.name][-1])}", flush=True)
    medians = {name: _median(measured) for name, measured in figures.items()}
    _print_table(medians, runs, objects)
    return _speed_gates(medians)


def _run_metrics(bench: Bench, size: Size) -> list[Gate]:
    """Compare the cost of metrics (calls times duration of one) with the total CPU time."""
    objects = size.objects
    cpu = bench.measure(ours(), "uncounted", objects)["CPU seconds"]
    calls, passes = bench.count_metric_calls(objects)
    takes = seconds_per_call()
    print(f"\n{objects} Infrastructures, {passes:.0f} passes")
    for name, count in calls.items():
        print(f"{name:<22}{count / passes:>8.2f} a pass, {takes[name] * 1e6:.2f} µs each")
    spent = sum(count * takes[name] for name, count in calls.items())
    print(f"{spent / passes * 1e6:.1f} µs of {cpu / passes * 1e6:.0f} µs CPU a pass")
    return [Gate("metrics, % of the CPU", 100 * spent / cpu, operator.le, 3.0)]


def _run_memory(bench: Bench, size: Size) -> list[Gate]:
    objects = size.cached
    keys = bench.fill(objects)
    resident, peak, scrape = bench.measure_cached(keys)
    print(f"\n{objects} Infrastructures and Clusters of 3 KB: {resident:.0f} MiB")
    deleting = bench.measure_deleting(keys)
    return [
        Gate(f"peak MiB with {objects} shoots", peak, operator.le, 130.0),
        Gate(f"ms a scrape with {objects} objects", scrape, operator.le, 100.0),
        Gate("ms a scrape, all of them under deletion", deleting, operator.le, 200.0),
    ]


def _run_webhooks(bench: Bench, size: Size) -> list[Gate]:
    world, folder = bench.world, bench.logs / "webhooks"
    folder.mkdir()
    measured = admission.measure(world.client, bench.kubeconfig, folder, size.admitted)
    measured.report()
    return [Gate("added ms a request, p99, ratio", measured.ratio, operator.le, 2.0)]


_PARTS: dict[str, Callable[[Bench, Size], list[Gate]]] = {
    "speed": _run_speed,
    "metrics": _run_metrics,
    "memory": _run_memory,
    "webhooks": _run_webhooks,
}


def _describe(figures: Figures) -> str:
    return ", ".join(f"{figures[name]:{form}} {name}" for name, form in _FORMATS.items())


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one run of few objects: a smoke test")
    parser.add_argument("--only", choices=list(_PARTS), help="one part of it")
    return parser.parse_args()


def main() -> int:
    """Run the selected parts; return the exit status."""
    args = _parse()
    size = _QUICK if args.quick else _WHOLE
    gates: list[Gate] = []
    with Environment(_progress) as environment, tempfile.TemporaryDirectory() as logs:
        world = World(connect(environment.kubeconfig))
        world.install()
        bench = Bench(world, world.watch(), environment.kubeconfig, Path(logs))
        for part in [args.only] if args.only else _PARTS:
            gates += _PARTS[part](bench, size)
    print()
    missed = [gate for gate in gates if not gate.report()]
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ActuatorError, EnvtestError) as error:
        sys.exit(f"bench: {error}")
