"""The process of a container over time: restarts, probes and its state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from generic.controller.workqueue import Backoff
from generic.testing.landscape import runs
from generic.testing.landscape.pods import Missing
from generic.testing.landscape.runs import STEADY_SECONDS, ContainerRun
from generic.testing.landscape.sandbox import Command
from tests.support.objects.stand_ins import StandIn

BEGIN = datetime(2026, 11, 25, tzinfo=UTC)


class Clock:
    seconds = 1000.0

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


class Process:
    """A process that ends when the test decides."""

    status: int | None = None
    terminated = False

    def poll(self):
        return self.status

    def terminate(self) -> None:
        self.terminated = True


class World(StandIn):
    """A container, its processes, and the answers of its probe."""

    def __init__(self, folder: Path, monkeypatch, policy: str = "Always") -> None:
        self.folder = folder
        self.policy = policy
        self.clock = Clock()
        self.started: list[Process] = []
        self.killed: list[str] = []
        self.is_up = True
        self.probes = 0
        self.error: Exception | None = None
        probe = {"httpGet": {"port": 8081}, "periodSeconds": 5, "failureThreshold": 2}
        self.spec = {"name": "main", "ports": [{"name": "http", "containerPort": 80}]}
        self.run = ContainerRun("name", {**self.spec, "readinessProbe": probe}, self, self.clock,
                       Backoff(1.0, 60.0, 0.0))  # fmt: skip
        monkeypatch.setattr(runs, "succeeds", self._succeeds)

    def _succeeds(self, _probe, port) -> bool:
        assert port(8081)
        self.probes += 1
        return self.is_up

    def start(self, name, words, environ, cwd) -> Process:
        self.started.append(Process())
        return self.started[-1]

    def kill(self, name: str) -> None:
        self.killed.append(name)

    def log(self, name: str) -> Path:
        path = self.folder / "log"
        path.write_text("why it ended\n")
        return path

    def advance(self, seconds: float = 0.0):
        self.clock.seconds += seconds
        self.run.advance(self._prepare, self.policy)
        return self.run.state()

    def _prepare(self) -> Command:
        if self.error:
            raise self.error
        self.run.port(80)
        return Command(["program"], {}, self.folder)

    def end(self, status: int) -> None:
        self.started[-1].status = status


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def test_a_container_is_running_and_ready_once_its_probe_succeeds(world):
    world.is_up = False
    state = world.advance()
    assert state.state == {"running": {"startedAt": "2026-11-25T00:16:40Z"}}
    assert not state.ready
    world.is_up = True
    assert world.advance(0.2).ready
    assert world.advance().restarts == 0


def test_readiness_ends_after_as_many_failed_probes_as_the_spec_says(world):
    world.advance()
    world.is_up = False
    assert world.advance(4.9).ready  # not probed yet
    assert world.advance(0.2).ready
    assert not world.advance(5.0).ready
    assert world.probes == 3


def test_delays_between_restarts_grow_up_to_a_maximum(world):
    waited = []
    for _ in range(8):
        world.advance()
        count = len(world.started)
        world.end(1)
        world.advance()
        began = world.clock.seconds
        while len(world.started) == count:
            world.advance(0.5)
        waited.append(world.clock.seconds - began)
    assert waited == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert world.run.state().restarts == 8


def test_a_process_that_ran_long_has_the_first_delay_again(world):
    for _ in range(3):
        world.advance()
        world.end(1)
        world.advance()
        world.advance(60.0)
    world.advance(STEADY_SECONDS)
    world.end(1)
    world.advance()
    world.advance(1.0)
    assert len(world.started) == 5


def test_the_state_between_restarts_has_the_reason(world):
    world.advance()
    world.end(-9)
    state = world.advance()
    assert state.state["waiting"]["reason"] == "CrashLoopBackOff"
    ended = state.last["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (137, "Error", "why it ended")
    assert not state.ready
    assert state.restarts == 0  # it counts starts


@pytest.mark.parametrize(
    ("policy", "status", "ends"),
    [
        ("Always", 0, False),
        ("OnFailure", 0, True),
        ("OnFailure", 1, False),
        ("Never", 0, True),
        ("Never", 1, True),
    ],
)
def test_the_restart_policy_decides_whether_it_ended_for_good(
    tmp_path, monkeypatch, policy, status, ends
):
    world = World(tmp_path, monkeypatch, policy)
    world.advance()
    world.end(status)
    state = world.advance()
    assert ("terminated" in state.state) == ends
    world.advance(100.0)
    assert len(world.started) == (1 if ends else 2)


def test_a_container_that_cannot_start_yet_starts_later_without_a_delay(world):
    world.error = Missing("Secret 'x' does not exist.")
    for _ in range(3):
        with pytest.raises(Missing):
            world.advance(0.1)
    waiting = world.run.state("Secret 'x' does not exist.").state["waiting"]
    assert waiting == {"reason": "ContainerCreating", "message": "Secret 'x' does not exist."}
    world.error = None
    assert "running" in world.advance(0.1).state
    assert world.run.state().restarts == 0


def test_each_start_has_new_ports_with_the_names_of_the_spec(world):
    world.advance()
    first = world.run.endpoints()
    assert set(first) == {80, "http", 8081}
    assert first[80] == first["http"] != first[8081]
    world.end(1)
    world.advance()
    world.advance(5.0)
    assert world.run.endpoints()[80] != first[80]


def test_a_terminated_container_is_not_ready(world):
    world.advance()
    world.run.terminate()
    assert world.started[-1].terminated
    assert not world.run.state().ready
    assert world.run.is_alive
    world.run.kill()
    assert world.killed == ["name"]
