"""A landscape: one garden, its seeds, and extensions that their charts install.

    extension = LandscapeExtension("aws", "extensions.aws:extension", registration)
    with running_landscape([plan], [extension], print) as landscape:
        landscape.garden.client.create(SHOOTS, shoot)

Gardener installs the extensions: each is a ControllerRegistration with its chart, whose Deployment
runs as a process of the seed's kubelet. Not here: the charts (`actuator chart` writes them).
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from attrs import field, frozen

from actuator.meta import Raw
from generic.library.programs.cache import Progress
from generic.library.programs.processes import Processes
from generic.testing.landscape.containers import Image
from generic.testing.landscape.garden import LandscapeGarden, running_garden
from generic.testing.landscape.images import extension_image
from generic.testing.landscape.seed import LandscapeSeed, running_seed
from generic.testing.landscape.seedobjects import SeedPlan
from generic.testing.polling import polling

_RESTART_SECONDS = 5.0
_ACTUATOR = "from generic.tools.cli.main import main; main()"


@frozen
class LandscapeExtension:
    """An extension of this framework."""

    name: str
    """The image of its chart is `extension-NAME`, in any registry."""
    target: str
    """MODULE:OBJECT, as for `actuator run`."""
    registration: Sequence[Raw]
    """Its ControllerRegistration and ControllerDeployment."""
    environ: Mapping[str, str] = field(factory=dict)
    """Variables of its process, such as the address of a simulated cloud."""
    folder: Path = field(factory=Path.cwd)
    """The folder in which Python finds the module."""

    @property
    def image(self) -> Image:
        """How its container runs."""
        program = [sys.executable, "-c", _ACTUATOR, "run"]
        return extension_image(program, self.target, self.environ, self.folder)


@frozen
class Landscape:
    """A running landscape."""

    garden: LandscapeGarden
    seeds: Sequence[LandscapeSeed]

    @property
    def processes(self) -> Processes:
        """All processes but those of the clusters."""
        return self.garden.processes


@contextmanager
def running_landscape(
    plans: Sequence[SeedPlan],
    extensions: Sequence[LandscapeExtension],
    progress: Progress,
    objects: Sequence[Raw] = (),
) -> Iterator[Landscape]:
    """Start a landscape, and stop it when the context is left; nothing of it remains.

    `objects` are created in the garden before the seeds start: domains, for example. It is entered
    when each Seed is registered. Gardener's programs that end are started again, since in a real
    landscape they are pods. Raises EnvtestError.
    """
    folder = Path(tempfile.mkdtemp(prefix="actuator-landscape-"))
    with ExitStack() as stack:
        processes = stack.enter_context(closing(Processes(folder)))
        supervised = polling(processes.restart_ended, "supervisor", every=_RESTART_SECONDS)
        stack.enter_context(supervised)
        garden = stack.enter_context(running_garden(processes, progress))
        for extension in extensions:
            garden.apply(extension.registration)
        garden.apply(objects)
        images = {f"extension-{extension.name}": extension.image for extension in extensions}
        seeds = [
            stack.enter_context(running_seed(garden, plan, images, progress)) for plan in plans
        ]
        yield Landscape(garden, seeds)
