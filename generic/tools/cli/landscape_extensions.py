"""The extensions of a landscape: from MODULE:OBJECT on the command line to charts.

A reference is a rehearsal, whose outside world the landscape then has, or an extension without
one. Not here: the commands (`landscape`), and what runs (`generic.testing.drill.landscape`).
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import evolve

from actuator.errors import ConfigurationError
from generic.library.programs.cache import Progress
from generic.library.programs.errors import EnvtestError
from generic.testing.drill.landscape.world import Installed, LandscapeWorld, running_world
from generic.testing.drill.world import outside
from generic.testing.envtest.binaries import kubernetes_version
from generic.testing.landscape import simulated
from generic.testing.landscape.landscape import LandscapeExtension
from generic.testing.landscape.offers import Offer, combined, image_of, missing, types_of
from generic.testing.landscape.snapshots import require_port
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal
from generic.testing.shootpart import ShootPart
from generic.tools.cli.load import load, load_manager, load_rehearsals
from generic.tools.packaging.chart import (
    ExtensionChart,
    chart_files,
    chart_name,
    options_for,
    packed,
)
from generic.tools.packaging.registration import controller_registration, controller_resources

DEFAULTS = (
    "extensions.aws.full_rehearsal:AwsFullRehearsal",
    "extensions.local.rehearsal:LocalRehearsal",
)
_PREFIX = "extension-"


@contextmanager
def landscape_world(
    references: Sequence[str],
    rehearsal: CombinedRehearsal | None,
    seeds: int,
    progress: Progress,
) -> Iterator[LandscapeWorld]:
    """Start a landscape with these extensions, and stop it when the context is left.

    `rehearsal` is `rehearsal_of` the references. Raises ActuatorError, ApiError or EnvtestError.
    """
    names = [f"seed-{number}" for number in range(1, seeds + 1)]
    with ExitStack() as stack:
        if rehearsal:
            stack.enter_context(outside(rehearsal, progress))
        installed = _install(references, rehearsal, migrates=seeds > 1)
        if installed.offer.backup and not _can_have_backups(seeds, progress):
            installed = evolve(installed, offer=evolve(installed.offer, has_backups=False))
        yield stack.enter_context(running_world(installed, rehearsal, names, progress))


def _can_have_backups(seeds: int, progress: Progress) -> bool:
    """Return whether gardenlet can request snapshots. Raises EnvtestError if two seeds need it."""
    try:
        require_port()
    except EnvtestError as error:
        if seeds > 1:
            raise
        progress(f"this landscape has no backups: {error}")
        return False
    return True


def rehearsal_of(references: Sequence[str]) -> CombinedRehearsal | None:
    """Return the rehearsals among the references, combined; None without any.

    Raises ConfigurationError.
    """
    found = [reference for reference in references if _is_rehearsal(reference)]
    return load_rehearsals(found) if found else None


def _install(
    references: Sequence[str], rehearsal: CombinedRehearsal | None, *, migrates: bool
) -> Installed:
    """Return the charts of all extensions, also of the simulated one, and the offer to users.

    The outside world of `rehearsal` must be started. `migrates`: seeds need backups. Raises
    ConfigurationError.
    """
    plain = [ShootPart(extension=name) for name in references if not _is_rehearsal(name)]
    first = [*_parts(rehearsal, ""), *plain]
    extensions = [_chart(part.extension, part.environ) for part in first]
    served = types_of(extension.registration for extension in extensions)
    if simulates := missing(served, backup=migrates):
        environ = {simulated.VARIABLE: json.dumps(simulates)}
        extensions.append(_chart(simulated.TARGET, environ))
        served = types_of(extension.registration for extension in extensions)
    names = [extension.name for extension in extensions]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(
                f"two extensions would have the chart {_PREFIX}{name}; rename a module, or add "
                "both in one function"
            )
    part = combined([*_parts(rehearsal, image_of(served)), *plain])
    offer = Offer(served, part, kubernetes_version().removeprefix("v"))
    return Installed(extensions=extensions, offer=offer, simulated=simulates)


def _parts(rehearsal: CombinedRehearsal | None, image: str) -> Sequence[ShootPart]:
    return rehearsal.shoot_parts(image) if rehearsal else ()


def _is_rehearsal(reference: str) -> bool:
    found = load(reference)
    return isinstance(found, type) and issubclass(found, Rehearsal)


def _chart(target: str, environ: Mapping[str, str]) -> LandscapeExtension:
    """Return the extension, registered with the chart that `actuator chart` writes."""
    name = chart_name(target)
    with _variables(environ):
        manager = load_manager(target, (), options_for(name))
    chart = ExtensionChart(name=name, extension=target, image=f"landscape.invalid/{name}")
    helm = {"rawChart": packed(name, chart_files(manager, chart))}
    documents = controller_registration(name, controller_resources(manager), helm, {})
    return LandscapeExtension(name.removeprefix(_PREFIX), target, documents, environ, Path.cwd())


@contextmanager
def _variables(given: Mapping[str, str]) -> Iterator[None]:
    """Set the variables of an extension while it is loaded."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
