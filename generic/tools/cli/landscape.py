"""`actuator landscape`: a real Gardener on this machine, without containers, that keeps running.

The landscape is a daemon (`landscape_daemon`); these commands start it, act in its garden as the
owner of Shoots does, and ask it about its outside world. A landscape has a name, so that several
can run side by side. Not here: drills on a landscape of their own (`drill --landscape`).
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import click
import yaml

from actuator.errors import ApiError, ConfigurationError
from actuator.meta import Raw
from generic.kube.client import HttpClient, connect
from generic.kube.printable import echo
from generic.library.programs import daemons
from generic.library.programs.cache import cache_directory
from generic.library.programs.daemons import DaemonFiles
from generic.library.programs.processes import tail
from generic.testing.envtest.binaries import find_binaries
from generic.testing.landscape.garden import SHOOTS
from generic.testing.landscape.memory import gib, require_memory, resident
from generic.testing.landscape.offers import NAMESPACE
from generic.testing.landscape.programs import find_gardener
from generic.testing.landscape.seed import SEEDS
from generic.testing.landscape.snapshots import require_port
from generic.testing.landscape.users import (
    ShootOwner,
    ShootView,
    has_moved,
    is_gone,
    is_ready,
    view_of,
)
from generic.tools.cli.env import name_option, progress, validated
from generic.tools.cli.landscape_daemon import ask, socket_path
from generic.tools.cli.landscape_extensions import DEFAULTS
from generic.tools.cli.load import load, output_option, print_as
from generic.tools.config_manifests import documents

_DAEMON = "generic.tools.cli.landscape_daemon"
_START_SECONDS = 900.0
"""Maximum time until a landscape runs, without builds, on a busy machine."""
_STOP_SECONDS = 60.0
_REAL = (
    "etcd, kube-apiserver, kube-controller-manager of garden, seed and shoots",
    "gardener-apiserver, -controller-manager, -scheduler, -admission-controller",
    "gardenlet, gardener-resource-manager, your extensions from their charts",
)
_FAKED = (
    "pods of other images, nodes and machines, VPN tunnel, DNS, load balancers, network policies",
    "status of etcd-druid, Prometheus and Alertmanager; backups of etcd",
)


_Reached = Callable[[ShootView | None], bool]


@click.group()
def landscape() -> None:
    """Run a real Gardener on this machine, without containers.

    A garden and its seeds run as processes of your user, on loopback addresses. Extensions are
    installed by their charts. kubectl works in the garden: users create Shoots with YAML.
    """


@landscape.command()
@click.argument("extensions", nargs=-1, metavar="[EXTENSION]...")
@click.option("--seeds", type=click.IntRange(1, 2), default=1, show_default=True)
@name_option
def up(extensions: tuple[str, ...], seeds: int, name: str) -> None:
    """Start a landscape with these extensions, and leave it running.

    EXTENSION is MODULE:OBJECT of an extension, or MODULE:CLASS of its rehearsal, which brings its
    outside world. Default: the AWS sample (AWS simulated by moto) and the local sample. Kinds
    that a Shoot needs and no extension serves are simulated.
    """
    references = extensions or DEFAULTS
    for reference in references:
        load(reference)  # report a wrong name before anything is built
    daemons.interruptible()
    state = _state(name)
    socket_path(state)
    if not state.is_held():
        require_memory(seeds)
        if seeds > 1:
            require_port()
    find_binaries(progress)
    find_gardener(progress)
    folder = str(Path.cwd())
    command = [_DAEMON, str(state.directory), folder, str(seeds), *references]
    what = f"landscape {name!r}"
    found = daemons.up(state, command, _START_SECONDS * seeds, progress, what)
    given = {"extensions": list(references), "count": seeds, "folder": folder}
    if any(found.published[key] != value for key, value in given.items()):
        running = ", ".join(found.published["extensions"])
        raise ConfigurationError(
            f"{what} is already running in {found.published['folder']} with {running} and "
            f"{found.published['count']} seeds; run `{_words(name, 'down')}`, or use --name"
        )
    if not found.started:
        echo(f"{what} is already running", err=True)
    echo(_summary(name, found.published), lines=True)


@landscape.command()
@name_option
def down(name: str) -> None:
    """Stop the landscape and delete everything in it."""
    stopped = daemons.down(_state(name), f"landscape {name!r}", _STOP_SECONDS)
    echo(f"landscape {name!r} is {'stopped' if stopped else 'not running'}")


@landscape.command()
@name_option
@output_option
def status(name: str, output: str) -> None:
    """Show addresses, Seeds, Shoots, programs and memory of the landscape."""
    state, found = _running(name)
    programs = ask(state, "programs")
    memory = resident(state.pid() or 0)
    garden = _garden(found)
    seeds = {}
    shoots = {}
    try:
        seeds = {seed["metadata"]["name"]: _operation(seed) for seed in garden.list(SEEDS)}
        shoots = dict(_shoot_rows(garden))
    except ApiError as error:
        programs = {**programs, "problem": str(error)}
    if output != "table":
        more = {"seedStates": seeds, "shoots": shoots, "memoryBytes": memory}
        print_as(output, {**found, **more, **programs})
        return
    rows = [(f"seed {seed}", text) for seed, text in seeds.items()]
    rows += [(f"shoot {shoot}", text) for shoot, text in shoots.items()]
    count = len(programs["alive"])
    rows += [("programs", f"{count} beside the clusters, {gib(memory)} GiB of memory")]
    rows += [("ended", f"{item}; see `{_words(name, 'logs', item)}`") for item in programs["ended"]]
    rows += [("garden", programs["problem"])] if "problem" in programs else []
    table = "\n".join(f"  {what:<26} {text}" for what, text in rows)
    echo(f"{_summary(name, found)}\n\n{table}", lines=True)


@landscape.command()
@click.argument("cluster", default="garden", metavar="[garden|SEED|SHOOT]")
@name_option
@click.option("--raw", is_flag=True, help="Print the content instead of the path.")
def kubeconfig(cluster: str, name: str, raw: bool) -> None:
    """Print the path of an administrator's kubeconfig: of the garden, a seed, or a Shoot."""
    state, found = _running(name)
    known = {"garden": found["garden"], **found["seeds"]}
    if cluster in known:
        path = Path(known[cluster]["kubeconfig"])
    else:
        view = _owner(found, cluster).view()
        if view is None or not view.technical_id:
            raise ConfigurationError(
                f"no cluster {cluster!r}: expected {', '.join(known)} or a Shoot that has a seed"
            )
        path = Path(ask(state, "shoot", view.technical_id)["kubeconfig"])
    echo(path.read_text() if raw else str(path), lines=True)


@landscape.command()
@click.argument("program", default="")
@name_option
@click.option("--lines", "-n", type=click.IntRange(1), default=20, show_default=True)
def logs(program: str, name: str, lines: int) -> None:
    """Print the end of the log of PROGRAM, or the names of all programs."""
    _, found = _running(name)
    folders = [
        found["logs"],
        *(seed["logs"] for seed in (found["garden"], *found["seeds"].values())),
    ]
    prefixes = ["", "garden/", *(f"{seed}/" for seed in found["seeds"])]
    files = {
        f"{prefix}{path.stem}": path
        for prefix, folder in zip(prefixes, folders, strict=True)
        for path in sorted(Path(folder).glob("*.log"))
    }
    if not program:
        echo("\n".join(files), lines=True)
    elif program in files:
        echo(tail(files[program], lines), lines=True)
    else:
        names = _words(name, "logs")
        raise ConfigurationError(f"no program {program!r}; `{names}` lists the names")


@landscape.group()
def outside() -> None:
    """Break, repair and list the outside world of the landscape's rehearsals."""


@outside.command("break")
@click.argument("scenario")
@name_option
def _break(scenario: str, name: str) -> None:
    """Cause the failure SCENARIO of the rehearsals, such as credentials-revoked."""
    echo(ask(_running(name)[0], "break", scenario)["text"])


@outside.command()
@name_option
def repair(name: str) -> None:
    """Undo all failures."""
    echo(ask(_running(name)[0], "repair")["text"])


@outside.command("list")
@name_option
def _list(name: str) -> None:
    """List the external resources that exist."""
    echo("\n".join(ask(_running(name)[0], "outside")["resources"]), lines=True)


@landscape.group()
def shoot() -> None:
    """Act on Shoots as their owner does, in the garden.

    Each command reports the changes that it waits for. After Ctrl-C, the Shoot continues.
    """


_FILE = click.option(
    "--file", "-f", type=click.File("rb"), help="Manifest. Default: what `shoot yaml` prints."
)
_TIMEOUT = click.option(
    "--timeout",
    type=click.FloatRange(0),
    default=900.0,
    help="Seconds to wait; 0: do not wait.",
)
_SHOOT = click.argument("shoot", metavar="NAME", callback=validated)


@shoot.command("list")
@name_option
def _shoots(name: str) -> None:
    """List the Shoots with their last operations."""
    for shoot, text in _shoot_rows(_garden(_running(name)[1])):
        echo(f"{shoot:<32} {text}", lines=True)


@shoot.command("yaml")
@_SHOOT
@name_option
def _yaml(shoot: str, name: str) -> None:
    """Print a Shoot with all kinds of the extensions, for `kubectl apply`."""
    echo(yaml.safe_dump(_manifest(_running(name)[1], shoot, None), sort_keys=False), lines=True)


@shoot.command()
@_SHOOT
@_FILE
@_TIMEOUT
@name_option
def create(shoot: str, file: BinaryIO | None, timeout: float, name: str) -> None:
    """Create a Shoot, and wait until it is ready."""
    _, found = _running(name)
    if shoot in ("garden", *found["seeds"]):
        raise ConfigurationError(f"{shoot!r} is the name of a cluster; choose another")
    manifest = _manifest(found, shoot, file)
    owner = _owner(found, shoot)
    owner.create(manifest)
    _await(owner, is_ready, timeout, name)


def _retried(view: ShootView | None) -> bool:
    return view is None or is_ready(view)


_ACTS: Mapping[str, tuple[str, Callable[[ShootOwner], None], _Reached]] = {
    "delete": (
        "Confirm the deletion of a Shoot, delete it, and wait until it is gone.",
        ShootOwner.delete,
        is_gone,
    ),
    "hibernate": (
        "Hibernate a Shoot, and wait for it.",
        partial(ShootOwner.hibernate, enabled=True),
        is_ready,
    ),
    "wake": (
        "Wake a Shoot up, and wait for it.",
        partial(ShootOwner.hibernate, enabled=False),
        is_ready,
    ),
    "reconcile": (
        "Request a reconciliation of a Shoot, and wait for it.",
        partial(ShootOwner.request, operation="reconcile"),
        is_ready,
    ),
    "retry": (
        "Retry the failed operation of a Shoot, and wait for it.",
        partial(ShootOwner.request, operation="retry"),
        _retried,
    ),
}


def _perform(
    act: Callable[[ShootOwner], None], reached: _Reached, shoot: str, timeout: float, name: str
) -> None:
    owner = _owner(_running(name)[1], shoot)
    if owner.view() is None:
        listing = _words(name, "shoot", "list")
        raise ConfigurationError(f"Shoot {shoot} does not exist; `{listing}` shows all")
    act(owner)
    _await(owner, reached, timeout, name)


for _word, (_help, _act, _end) in _ACTS.items():
    _run = name_option(_TIMEOUT(_SHOOT(partial(_perform, _act, _end))))
    shoot.add_command(click.command(_word, help=_help)(_run))


@shoot.command()
@_SHOOT
@click.argument("seed")
@_TIMEOUT
@name_option
def migrate(shoot: str, seed: str, timeout: float, name: str) -> None:
    """Move a Shoot to SEED as an operator, and wait until it is restored there."""
    _, found = _running(name)
    if seed not in found["seeds"]:
        raise ConfigurationError(f"no seed {seed!r}: expected {', '.join(found['seeds'])}")
    _perform(partial(ShootOwner.migrate, seed=seed), has_moved(seed), shoot, timeout, name)


@shoot.command("force-delete")
@_SHOOT
@_TIMEOUT
@name_option
def force_delete(shoot: str, timeout: float, name: str) -> None:
    """Annotate a Shoot once its deletion shows an error code, and wait until it is gone."""
    _perform(partial(_force, timeout=timeout), is_gone, shoot, timeout, name)


def _force(owner: ShootOwner, timeout: float) -> None:
    if refusal := owner.force_delete_once_stuck(timeout, lambda text: echo(text, lines=True)):
        raise ConfigurationError(
            f"gardener-apiserver refuses the force deletion: {refusal}; delete the Shoot first, "
            "and wait until it shows an error code"
        )


def _await(owner: ShootOwner, reached: _Reached, timeout: float, name: str) -> None:
    """Report the Shoot until it is as wanted. Raises ConfigurationError."""
    if timeout and not owner.wait_until(reached, timeout, lambda text: echo(text, lines=True)):
        found = _running(name)[1]
        files = [found["garden"]["kubeconfig"], next(iter(found["seeds"].values()))["kubeconfig"]]
        raise ConfigurationError(
            f"Shoot {owner.name} is not as wanted: {owner.view() or 'gone'}; to see why, run "
            f"`actuator explain {owner.namespace}/shoot/{owner.name} "
            f"--garden-kubeconfig {files[0]} --kubeconfig {files[1]}`"
        )


def _manifest(found: Mapping[str, Any], name: str, file: BinaryIO | None) -> Raw:
    if file is None:
        manifest: Raw = found["shoot"]
    else:
        manifest, *others = [*filter(None, documents(file))] or [None]
        is_mapping = isinstance(manifest, dict) and isinstance(manifest.get("metadata"), dict)
        if others or not is_mapping:
            raise ConfigurationError(f"{file.name}: expected the YAML mapping of one Shoot")
    meta = {"namespace": NAMESPACE, **manifest["metadata"]}
    meta["name"] = name if file is None else meta.get("name")
    if meta["name"] != name or meta["namespace"] != NAMESPACE:
        raise ConfigurationError(
            f"the Shoot in the file is {meta['namespace']}/{meta['name']}, expected "
            f"{NAMESPACE}/{name}"
        )
    return {**manifest, "metadata": meta}


def _state(name: str) -> DaemonFiles:
    return DaemonFiles(cache_directory() / "landscapes" / name)


def _running(name: str) -> tuple[DaemonFiles, Raw]:
    """Return the state of a running landscape. Raises ConfigurationError if it does not run."""
    state = _state(name)
    found = state.published() if state.is_held() else None
    if found is None:
        what = "is starting or stopping" if state.is_held() else "is not running"
        raise ConfigurationError(f"landscape {name!r} {what}; run `{_words(name, 'up')}`")
    return state, found


def _garden(found: Mapping[str, Any]) -> HttpClient:
    return connect(Path(found["garden"]["kubeconfig"]))


def _owner(found: Mapping[str, Any], shoot: str) -> ShootOwner:
    return ShootOwner(_garden(found), shoot)


def _words(name: str, *words: str) -> str:
    """Return a command for this landscape."""
    more = [] if name == "default" else [f"--name={name}"]
    return shlex.join(["actuator", "landscape", *words, *more])


def _shoot_rows(garden: HttpClient) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of each Shoot, and its view."""
    for shoot in garden.list(SHOOTS):
        meta = shoot["metadata"]
        yield f"{meta['namespace']}/{meta['name']}", str(view_of(shoot))


def _operation(seed: Raw) -> str:
    operation = (seed.get("status") or {}).get("lastOperation") or {}
    return f"{operation.get('state', 'waiting')}: {operation.get('description', '')}"


def _summary(name: str, found: Mapping[str, Any]) -> str:
    lines = [
        f"landscape {name!r}: Gardener {found['gardener']}, Kubernetes {found['kubernetes']}",
        f"  garden      {found['garden']['url']}",
        *(f"  {seed:<11} {item['url']}" for seed, item in found["seeds"].items()),
        f"  extensions  {', '.join(found['extensions'])}",
    ]
    if found["simulated"]:
        lines.append(f"  simulated   {', '.join(found['simulated'])}")
    lines += [f"  {'real' if not n else '':<11} {text}" for n, text in enumerate(_REAL)]
    lines += [f"  {'faked' if not n else '':<11} {text}" for n, text in enumerate(_FAKED)]
    lines += [
        "to use it:",
        f"  export KUBECONFIG={found['garden']['kubeconfig']}",
        f"  {_words(name, 'shoot', 'create', 'NAME')}",
        f"to stop it:\n  {_words(name, 'down')}",
    ]
    return "\n".join(lines)
