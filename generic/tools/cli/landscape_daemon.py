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
from contextlib import ExitStack
from multiprocessing.connection import Client, Listener
from pathlib import Path
from shutil import rmtree

from actuator.errors import ActuatorError, ApiError, ConfigurationError
from actuator.meta import Raw
from generic.kube.errorinfo import describe
from generic.library.programs import daemons
from generic.library.programs.daemons import DaemonFiles
from generic.library.programs.errors import EnvtestError
from generic.testing.drill.landscape.world import LandscapeWorld
from generic.testing.envtest.access import ClusterAccess
from generic.testing.envtest.binaries import kubernetes_version
from generic.testing.landscape.gardenobjects import APISERVER, CONTROLLERS
from generic.testing.landscape.programs import gardener_version
from generic.testing.rehearsal import CombinedRehearsal
from generic.tools.cli.landscape_extensions import landscape_world, rehearsal_of

SHOOT = "NAME"
"""The name of the published Shoot."""
_SOCKET = "control"
_SOCKET_BYTES = 100
"""Maximum length of the path of a Unix socket, which Linux limits to 107."""
_REQUEST_SECONDS = 5.0
_ANSWER_SECONDS = 120.0
_MAX_BYTES = 1 << 20

Answer = Callable[..., Raw]


def socket_path(state: DaemonFiles) -> Path:
    """Return the path of the socket. Raises ConfigurationError if it is too long."""
    path = state.directory / _SOCKET
    if len(os.fsencode(path)) > _SOCKET_BYTES:
        raise ConfigurationError(
            f"the path {path} is too long for a socket; set ACTUATOR_CACHE to a shorter folder"
        )
    return path


def ask(state: DaemonFiles, *request: str) -> Raw:
    """Return the daemon's answer. Raises ConfigurationError with its refusal."""
    try:
        with Client(str(socket_path(state)), family="AF_UNIX") as connection:
            connection.send_bytes(json.dumps(request).encode())
            if not connection.poll(_ANSWER_SECONDS):
                raise TimeoutError(f"no answer in {_ANSWER_SECONDS:.0f} s")
            answer: Raw = json.loads(connection.recv_bytes())
    except (OSError, EOFError, ValueError) as error:
        text = f"the landscape does not answer: {error or 'it ended'}; see {state.log}"
        raise ConfigurationError(text) from error
    if problem := answer.get("error"):
        raise ConfigurationError(problem)
    return answer


def answers(world: LandscapeWorld, state: DaemonFiles) -> Mapping[str, Answer]:
    """Return the function that answers each request, by its name."""
    landscape = world.landscape

    def rehearsal() -> CombinedRehearsal:
        if world.rehearsal is None:
            raise ConfigurationError(
                "no extension of this landscape has a rehearsal, which brings an outside world"
            )
        return world.rehearsal

    def inject_failure(scenario: str) -> Raw:
        rehearsal().break_where_known(scenario)
        return {"text": rehearsal().all_scenarios[scenario]}

    def repair() -> Raw:
        rehearsal().repair_failure()
        return {"text": "Every outside world works again."}

    def programs() -> Raw:
        alive = landscape.processes.alive()
        components = [APISERVER, *CONTROLLERS, *(seed.gardenlet for seed in landscape.seeds)]
        return {"alive": alive, "ended": [name for name in components if name not in alive]}

    def shoot(technical_id: str) -> Raw:
        """Write the kubeconfig of a shoot's administrator."""
        for seed in landscape.seeds:
            if found := seed.shoots.access(technical_id).kubeconfig():
                content = found.encoded(technical_id)
                path = state.publish_secret(f"{technical_id}.kubeconfig", content)
                return {"kubeconfig": str(path)}
        raise ConfigurationError(f"the API server of {technical_id} does not run")

    return {
        "break": inject_failure,
        "repair": repair,
        "outside": lambda: {"resources": [str(item) for item in rehearsal().remaining_resources()]},
        "programs": programs,
        "shoot": shoot,
    }


def _serve(listener: Listener, known: Mapping[str, Answer]) -> None:
    """Answer requests, one after the other, until the listener is closed."""
    while True:
        try:
            connection = listener.accept()
        except OSError:
            return
        with connection:
            try:
                if connection.poll(_REQUEST_SECONDS):
                    name, *arguments = json.loads(connection.recv_bytes(_MAX_BYTES))
                    connection.send_bytes(json.dumps(_answered(known, name, arguments)).encode())
            except (OSError, EOFError, ValueError):  # a client that left, or sent no request
                continue


def _answered(known: Mapping[str, Answer], name: str, arguments: Sequence[str]) -> Raw:
    """Return the answer to a request, or its error: rehearsals are code of authors."""
    try:
        return known[name](*arguments)
    except (ActuatorError, ApiError, EnvtestError) as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"{name}: {describe(error)}"}


def _published(world: LandscapeWorld, state: DaemonFiles) -> Raw:
    """Write the kubeconfigs, and return the data for commands."""
    landscape = world.landscape
    installed = world.installed
    seeds = {seed.plan.name: seed.cluster for seed in landscape.seeds}

    def cluster(name: str, access: ClusterAccess) -> Raw:
        kubeconfig = state.publish_secret(f"{name}.kubeconfig", access.kubeconfig.read_bytes())
        return {"url": access.url, "kubeconfig": str(kubeconfig), "logs": str(access.logs)}

    return {
        "gardener": gardener_version(),
        "kubernetes": kubernetes_version(),
        "garden": cluster("garden", landscape.garden.cluster),
        "seeds": {name: cluster(name, access) for name, access in seeds.items()},
        "logs": str(landscape.processes.logs),
        "simulated": dict(installed.simulated),
        "shoot": installed.offer.shoot(SHOOT),
    }


def run(state: DaemonFiles, folder: str, seeds: str, references: Sequence[str]) -> None:
    """Run the landscape until SIGTERM. Raises any error of an author's code, too."""

    def progress(line: str) -> None:
        print(line, flush=True)

    rehearsal = rehearsal_of(references)
    with ExitStack() as stack:
        socket = socket_path(state)
        socket.unlink(missing_ok=True)
        listener = stack.enter_context(Listener(str(socket), family="AF_UNIX"))
        opening = landscape_world(references, rehearsal, int(seeds), progress)
        world = stack.enter_context(opening)
        known = answers(world, state)
        threading.Thread(target=_serve, args=(listener, known), daemon=True).start()
        given = {"extensions": list(references), "count": int(seeds), "folder": folder}
        stack.callback(state.clear)  # first of all: a landscape that ends must not be used
        state.publish({**_published(world, state), **given})
        while True:
            signal.pause()


def main() -> None:
    """Run with the arguments: the state's directory, a working folder, seeds, references."""
    daemons.end_with_sigterm()
    logging.getLogger().addHandler(logging.NullHandler())  # the log has reasons of failures only
    directory, folder, seeds, *references = sys.argv[1:]
    os.chdir(folder)
    state = DaemonFiles(Path(directory))
    try:
        run(state, folder, seeds, references)
    except SystemExit:
        rmtree(directory, ignore_errors=True)
        raise
    except (ActuatorError, ApiError, EnvtestError) as error:
        sys.exit(str(error))
    except Exception as error:
        sys.exit(describe(error))
    finally:
        state.clear()


if __name__ == "__main__":
    main()
