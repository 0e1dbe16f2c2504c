"""The daemon of `actuator landscape`: runs one landscape, and obeys the commands of its user.

It holds the outside world too, so a command asks it through a Unix socket in its private folder to
break or to repair that. A request is a JSON list, an answer a JSON object. Not here: the commands.
"""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from shutil import rmtree

import attrs

from actuator.errors import ActuatorError, ApiError, ConfigurationError
from actuator.meta import Raw
from generic.library.programs import daemons
from generic.library.programs.daemons import State
from generic.library.programs.errors import EnvtestError
from generic.testing.drill.landscape.world import LandscapeWorld
from generic.testing.envtest.binaries import kubernetes_version
from generic.testing.landscape.gardenobjects import APISERVER, CONTROLLERS
from generic.testing.landscape.programs import gardener_version
from generic.testing.rehearsal import CombinedRehearsal
from generic.tools.cli.landscape_extensions import landscape_world, rehearsal_of

_SOCKET = "control"
NAME = "NAME"
"""The name of the published Shoot."""


def ask(state: State, *request: str) -> Raw:
    """Return the daemon's answer. Raises ConfigurationError with its refusal."""
    try:
        with Client(str(state.directory / _SOCKET), family="AF_UNIX") as connection:
            connection.send_bytes(json.dumps(request).encode())
            answer: Raw = json.loads(connection.recv_bytes())
    except (OSError, EOFError, ValueError) as error:
        raise ConfigurationError(
            f"the landscape does not answer: {error}; see {state.log}"
        ) from error
    if problem := answer.get("error"):
        raise ConfigurationError(problem)
    return answer


@attrs.frozen
class Control:
    """Obeys requests: each method is one, with its arguments."""

    world: LandscapeWorld
    directory: Path

    def answer(self, name: str, *arguments: str) -> Raw:
        """Return the answer to a request, or its error."""
        requests: Mapping[str, Callable[..., Raw]] = {
            "break": self._break,
            "outside": self._outside,
            "programs": self._programs,
            "repair": self._repair,
            "shoot": self._shoot,
        }
        try:
            return requests[name](*arguments)
        except (ActuatorError, ApiError, EnvtestError) as error:
            return {"error": str(error)}

    def _break(self, scenario: str) -> Raw:
        return {"text": self._rehearsed().break_where_known(scenario)}

    def _repair(self) -> Raw:
        self._rehearsed().mend_outside()
        return {"text": "Every outside world works again."}

    def _outside(self) -> Raw:
        return {"resources": [str(one) for one in self._rehearsed().left_outside()]}

    def _programs(self) -> Raw:
        landscape = self.world.landscape
        alive = landscape.processes.alive()
        components = [APISERVER, *CONTROLLERS, *(seed.gardenlet for seed in landscape.seeds)]
        return {"alive": alive, "ended": [one for one in components if one not in alive]}

    def _shoot(self, technical_id: str) -> Raw:
        """Write the kubeconfig of a shoot's administrator."""
        for seed in self.world.landscape.seeds:
            if found := seed.shoots.access(technical_id).kubeconfig():
                path = self.directory / f"{technical_id}.kubeconfig"
                path.unlink(missing_ok=True)
                path.touch(mode=0o600)
                path.write_bytes(found.encoded(technical_id))
                return {"kubeconfig": str(path)}
        raise ConfigurationError(f"the API server of {technical_id} does not run")

    def _rehearsed(self) -> CombinedRehearsal:
        if self.world.rehearsal is None:
            raise ConfigurationError(
                "no extension of this landscape has a rehearsal, which brings an outside world"
            )
        return self.world.rehearsal


def _serve(listener: Listener, control: Control) -> None:
    while True:
        with suppress(OSError, EOFError, ValueError, TypeError), listener.accept() as connection:
            _obey(connection, control)


def _obey(connection: "Connection[bytes, bytes]", control: Control) -> None:
    request = json.loads(connection.recv_bytes())
    connection.send_bytes(json.dumps(control.answer(*request)).encode())


def _published(world: LandscapeWorld, state: State) -> Raw:
    """Write the kubeconfigs, and return what commands need."""
    landscape, installed = world.landscape, world.installed
    garden = landscape.garden
    seeds = {
        seed.plan.name: {
            "url": seed.cluster.url,
            "kubeconfig": str(
                state.publish_kubeconfig(seed.cluster.kubeconfig, f"{seed.plan.name}.kubeconfig")
            ),
            "logs": str(seed.cluster.logs),
        }
        for seed in landscape.seeds
    }
    return {
        "gardener": gardener_version(),
        "kubernetes": kubernetes_version(),
        "garden": {
            "url": garden.cluster.url,
            "kubeconfig": str(state.publish_kubeconfig(garden.cluster.kubeconfig)),
            "logs": str(garden.cluster.logs),
        },
        "seeds": seeds,
        "logs": str(landscape.processes.logs),
        "extensions": [one.target for one in installed.extensions],
        "types": {kind: [*types] for kind, types in sorted(installed.offer.types.items())},
        "simulated": dict(installed.simulated),
        "shoot": installed.offer.shoot(NAME),
    }


def run(state: State, seeds: int, references: Sequence[str]) -> None:
    """Run the landscape until SIGTERM. Raises ActuatorError, ApiError or EnvtestError."""

    def progress(line: str) -> None:
        print(line, flush=True)

    rehearsal = rehearsal_of(references)
    with ExitStack() as stack:
        world = stack.enter_context(landscape_world(references, rehearsal, seeds, progress))
        socket = state.directory / _SOCKET
        socket.unlink(missing_ok=True)
        listener = stack.enter_context(Listener(str(socket), family="AF_UNIX"))
        control = Control(world, state.directory)
        threading.Thread(target=_serve, args=(listener, control), daemon=True).start()
        state.publish(_published(world, state))
        while True:
            signal.pause()


def main() -> None:
    """Run with the arguments: the state's directory, a working folder, seeds, references."""
    daemons.end_with_sigterm()
    logging.getLogger().addHandler(logging.NullHandler())  # the log has reasons of failures only
    directory, folder, seeds, *references = sys.argv[1:]
    os.chdir(folder)
    state = State(Path(directory))
    try:
        run(state, int(seeds), references)
    except (ActuatorError, ApiError, EnvtestError) as error:
        sys.exit(str(error))
    finally:
        state.clear()
        if not state.log.stat().st_size:
            rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
