"""Sandbox: the private folder of one pod, and the command lines of its containers.

    UID/volumes/VOLUME      see `volumes`
    UID/containers/NAME     HOME of a container, and the files that the table of images derives

Not here: the rules for commands and paths (`containers`, `pods`), the table (`images`).
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from actuator.meta import Raw
from generic.kube.kubeconfig import write_kubeconfig
from generic.testing.envtest.access import ClusterAccess
from generic.testing.landscape.containers import (
    Derived,
    Image,
    PlannedContainer,
    arguments_of,
    check_paths,
)
from generic.testing.landscape.pods import SERVICE_ACCOUNT, Missing, Read, environ
from generic.testing.landscape.router import Router
from generic.testing.landscape.volumes import Token, Volumes, make_folders, rewriter, write_private


@frozen
class Command:
    """A command line that may be started."""

    words: Sequence[str | Path]
    environ: Mapping[str, str]
    cwd: Path


@frozen
class SandboxWorld:
    """The environment that the pods of one cluster share."""

    cluster: ClusterAccess
    router: Router
    folder: Path
    """The private folder of all pods."""
    read: Read
    token: Token


class Sandbox:
    """The folder of one pod."""

    def __init__(self, pod: Raw, world: SandboxWorld) -> None:
        self._pod = pod
        self._world = world
        self.folder = world.folder.resolve() / pod["metadata"]["uid"]
        self._volumes = Volumes(pod, self.folder / "volumes", world.read, world.token)
        self._derived: dict[str, Sequence[Derived]] = {}

    def refresh(self) -> None:
        """Update all files. Raises Missing, Refused and ApiError."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        try:
            self._volumes.refresh()
        finally:
            for derived in self._derived.values():
                _derive(derived)

    def command(self, spec: Raw, image: Image, port: Callable[[int], int]) -> Command:
        """Return the command line of a container. Raises Missing, Refused and EnvtestError.

        The caller has used `pods.check` before.
        """
        folder = self.folder / "containers" / spec["name"]
        make_folders(self.folder, folder)
        variables = environ(self._pod, spec, self._world.read)
        paths = self._volumes.paths(spec)
        local = rewriter(paths)
        namespace = self._pod["metadata"]["namespace"]
        account = paths.get(SERVICE_ACCOUNT)
        container = PlannedContainer(
            namespace=namespace,
            arguments=[local(word) for word in arguments_of(spec, image, variables)],
            root=self.folder,
            folder=folder,
            local=local,
            port=port,
            proxy_url=self._world.router.proxy_url(namespace),
            kubeconfig=self._account(folder, account) if account else None,
        )
        launch = image.launch(container)
        variables = {name: local(value) for name, value in variables.items()}
        check_paths([*launch.arguments, *variables.values()], self.folder)
        _derive(launch.derived)
        self._derived[spec["name"]] = launch.derived
        words = [*launch.program, *launch.arguments]
        variables |= {"HOME": str(folder), "TMPDIR": str(folder), **launch.environ}
        return Command(words, variables, launch.cwd or folder)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _account(self, folder: Path, mount: Path) -> Path:
        """Write the kubeconfig of the pod's service account, whose token is renewed."""
        path = folder / "account.kubeconfig"
        cluster = self._world.cluster
        server = {"server": cluster.url, "certificate-authority": str(cluster.ca_file)}
        namespace = self._pod["metadata"]["namespace"]
        user = {"tokenFile": str(mount / "token")}
        write_private(path, write_kubeconfig(server, user, "seed", namespace))
        return path


def _derive(files: Sequence[Derived]) -> None:
    for file in files:
        try:
            content = file.source.read_bytes()
        except OSError:
            raise Missing(f"the file {file.source.name!r} does not exist yet.") from None
        write_private(file.target, file.convert(content))
