"""`actuator dev`: an extension on a cluster with a shoot, restarted on every change.

The manager runs in a child process. Files are compared by time and size twice a second: that needs
no dependency, and works on every file system.
"""

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
import click
import msgspec

from actuator.shared_names import share_names
from actuator.v1alpha1 import KINDS
from generic.kube.client import HttpClient, connect
from generic.kube.crds import crd
from generic.kube.printable import echo
from generic.manager.flags import FLAGS, PREFIX, ManagerCommand
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import grant
from generic.manager.running import check_ports
from generic.serving import logs
from generic.testing.controllers import SEED_KINDS
from generic.testing.drill.seeds import running_seed
from generic.testing.envtest.servers import free_port
from generic.testing.gardenapi.admission import admission_options
from generic.testing.seed import CRDS, install_crds
from generic.testing.shootapi import ShootServers
from generic.testing.shoots import Shoots
from generic.tools.cli.dev_admission import USER, admission_manager, banner, serving_garden
from generic.tools.cli.development import DevelopmentTarget, announced
from generic.tools.cli.env import progress
from generic.tools.cli.load import load_manager, types_option, with_flags
from generic.tools.cli.shoot import prepare, shoot_named
from generic.tools.cli.statuses import reported

_USER = "actuator-dev"
_SHOOT = "local"
_NO_SOURCES = frozenset({"__pycache__", "build", "dist", "node_modules"})
_LOOK_SECONDS = 0.4
_STOP_SECONDS = 5.0
_PROCESSES = multiprocessing.get_context("forkserver")
"""Its processes have the framework's modules from the start, and none of the author's."""


@click.command(cls=ManagerCommand, context_settings={"auto_envvar_prefix": PREFIX})
@click.argument("extension")
@types_option
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Path of the kubeconfig. Default: an embedded cluster.",
)
@click.option(
    "--admission",
    help="Admission, MODULE:OBJECT, or none. Default: `admission` in a module of this name.",
)
@click.option("--with-shoot-api", is_flag=True, help="Start an API server for each shoot.")
@with_flags(*({str(flag.name) for flag in FLAGS} - {"kubeconfig", "master"}))
def dev(
    extension: str,
    types: tuple[str, ...],
    admission: str | None,
    with_shoot_api: bool,
    **values: Any,
) -> None:
    """Run EXTENSION (MODULE:OBJECT) with a shoot, and restart it on every change.

    The command starts an embedded cluster with all CRDs, the simulated controllers of a seed, and
    the manager, with the permissions that `actuator rbac` prints. It creates the namespace, the
    Cluster and the Secret of the shoot `local`. If a changed file cannot be loaded, it prints the
    error and waits for the next change.

    If the extension has an admission, the cluster is a garden as well: it serves Shoots,
    CloudProfiles and the other types that an admission selects, as CRDs.

    With --kubeconfig, it uses an existing cluster: it installs the missing CRDs, runs the manager
    as that user, and simulates no controllers and no garden. The shoots remain in that cluster.
    """
    options = Options(**values)
    if options.context and not options.kubeconfig:  # other terminals may have another KUBECONFIG
        raise click.UsageError("--context requires --kubeconfig")
    if with_shoot_api and options.kubeconfig:
        raise click.UsageError("--with-shoot-api requires the embedded cluster")
    options = attrs.evolve(options, shutdown_timeout=min(options.shutdown_timeout, _STOP_SECONDS))
    manager = load_manager(extension, types, options)
    check_ports(options, webhooks=bool(manager.webhooks))
    for number in (signal.SIGINT, signal.SIGTERM):  # shells ignore SIGINT for background jobs
        signal.signal(number, signal.default_int_handler)
    target = DevelopmentTarget(extension=extension, types=types, admission=admission)
    admission_manager(target, options)  # a mistake ends the command
    seed = _seed(options, with_shoot_api=with_shoot_api)
    with suppress(KeyboardInterrupt), announced() as announce, seed as (admin, used, garden):
        target = msgspec.structs.replace(target, kubeconfig=admin, context=used.context)
        client = target.connect()
        prepare(client, shoot_named(_SHOOT))
        announce(target)
        echo(_banner(target, client, manager, garden), lines=True)
        _supervise(target, used, garden)


@contextmanager
def _seed(
    options: Options, *, with_shoot_api: bool
) -> Iterator[tuple[Path, Options, Options | None]]:
    """Yield the administrator's kubeconfig, and the options of the manager and its admission.

    The latter are None on a cluster of others.
    """
    if options.kubeconfig:
        kinds = (*KINDS, *SEED_KINDS)
        install_crds(connect(options.kubeconfig, options.context), kinds)
        yield options.kubeconfig, options, None
        return
    echo("starting the embedded cluster", err=True)
    with (
        ShootServers() as servers,
        running_seed([*map(crd, KINDS)], servers if with_shoot_api else Shoots(), progress) as seed,
    ):
        admin = seed.environment.kubeconfig
        mine = seed.environment.user_kubeconfig(_USER)
        garden = admission_options(
            options.extension,
            seed.environment.user_kubeconfig(USER),
            options.webhook_config_server_host or "127.0.0.1",
            free_port(),
        )
        yield admin, attrs.evolve(with_webhooks(options), kubeconfig=mine), garden


def with_webhooks(options: Options) -> Options:
    """Return options by which an API server on this machine reaches the webhooks."""
    if options.serves_webhooks:
        return options
    url = f"{options.webhook_config_server_host}:{options.webhook_config_server_port}"
    return attrs.evolve(options, webhook_config_mode="url", webhook_config_url=url)


def _banner(
    target: DevelopmentTarget, client: HttpClient, manager: Manager, garden: Options | None
) -> str:
    kubernetes = json.loads(client.send("GET", "/version"))["gitVersion"]
    namespace = shoot_named(_SHOOT).technical_id
    return f"""\
actuator {version("gardener-actuator")}: developing {target.extension}
  serves      {_served(manager)}
  cluster     Kubernetes {kubernetes}, https://{client.host}
  kubeconfig  export KUBECONFIG={target.kubeconfig}
  metrics     {manager.options.metrics_bind_address}, health {manager.options.health_bind_address}
  shoot       {_SHOOT}, in namespace {namespace}; edit its Secret cloudprovider

In another terminal, in this directory:
  actuator shoot create {_SHOOT}
  actuator explain {namespace}
  actuator shoot force-delete {_SHOOT}
{banner(target, manager, garden)}
Save a Python file to restart the manager; press Ctrl-C to stop."""


def _served(manager: Manager) -> str:
    served = (f"{item.kind.name} {' '.join(item.types)}".rstrip() for item in manager.registrations)
    return ", ".join(served)


def _supervise(target: DevelopmentTarget, options: Options, garden: Options | None) -> None:
    """Run the manager, and restart it on every change of a source file."""
    _PROCESSES.set_forkserver_preload([__name__])
    here = Path.cwd()
    seen = sources(here)
    while True:
        process = _PROCESSES.Process(target=_serve, args=(target, options, garden))
        process.start()
        try:
            while process.is_alive() and sources(here) == seen:
                time.sleep(_LOOK_SECONDS)
            if not process.is_alive():
                echo("the manager does not run; waiting for a change", err=True)
            while (now := sources(here)) == seen:
                time.sleep(_LOOK_SECONDS)
            names = sorted({path.name for path, _ in now.items() ^ seen.items()})
            echo(f"{', '.join(names)} changed: restarting the manager", err=True)
            seen = now
        finally:
            process.terminate()
            process.join(2 * _STOP_SECONDS)
            process.kill()
            process.join()


def _serve(target: DevelopmentTarget, options: Options, garden: Options | None) -> None:
    """Load the extension and run its manager; the child process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    share_names()
    sys.dont_write_bytecode = True  # its age is in seconds: two changes in one would be one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with reported():
        logs.configure(options.log_level, options.log_format, collapse=True)
        manager = target.manager(options)
        client = target.connect()
        own = [crd(item.cls) for item in manager.registrations if item.cls not in KINDS]
        install_crds(client, own)
        if options.kubeconfig != target.kubeconfig:  # the cluster is embedded
            for obj in own:
                client.patch(CRDS, obj["metadata"]["name"], "", {"spec": obj["spec"]})
            grant(client, manager, _USER)
        with serving_garden(target, client, manager, garden):
            echo(f"the manager serves {_served(manager)}", err=True)
            manager.run()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def sources(top: Path) -> dict[Path, tuple[int, int]]:
    """Return time and size of the Python files below, without hidden folders and environments."""
    found = {}
    for folder, names, files in os.walk(top):
        kept = [name for name in names if name[0] != "." and name not in _NO_SOURCES]
        names[:] = [] if "pyvenv.cfg" in files else kept
        for path in (Path(folder, name) for name in files if name.endswith(".py")):
            with suppress(OSError):  # deleted in between
                found[path] = (path.stat().st_mtime_ns, path.stat().st_size)
    return found
