"""The programs of the embedded cluster: found, or built into the cache.

The order is that of envtest users: the folder `KUBEBUILDER_ASSETS`, then our cache, then a build
(golang.py) from the modules below `assets/`. A folder of envtest has no kube-controller-manager,
so missing programs are taken from the cache or built.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from generic.library.programs.cache import Progress
from generic.library.programs.errors import EnvtestError
from generic.library.programs.golang import GoModule, cached_programs, required_version

ASSETS = Path(__file__).with_name("assets")
_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager")
VERSION_PACKAGE = "k8s.io/component-base/version"


Binaries = Mapping[str, Path]
"""The paths of the embedded cluster's programs, by name."""


def find_binaries(progress: Progress) -> Binaries:
    """Find or build the programs: etcd, kube-apiserver and kube-controller-manager.

    Raises EnvtestError, which names the ways to obtain them.
    """
    paths = _given()
    for module in (etcd_module(), kubernetes_module()):
        missing = module.programs.keys() - paths.keys()
        if missing:
            folder = _cached(module, progress)
            paths |= {name: folder / name for name in missing}
    return {name: paths[name] for name in _NAMES}


def etcd_module() -> GoModule:
    """Return the module of etcd, at the version that its go.mod pins."""
    package = "go.etcd.io/etcd/server/v3"
    folder = ASSETS / "etcd"
    return GoModule(f"etcd-{required_version(folder, package)}", folder, {"etcd": package})


def kubernetes_module() -> GoModule:
    """Return the module of API server and controller manager, at the version of their go.mod."""
    version = kubernetes_version()
    return GoModule(
        f"kubernetes-{version}",
        ASSETS / "kubernetes",
        {
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager")
        },
        version_flags(version),
    )


def kubernetes_version() -> str:
    """Return the version of Kubernetes that go.mod pins, such as "v1.36.3"."""
    return required_version(ASSETS / "kubernetes", "k8s.io/kubernetes")


def version_flags(version: str) -> tuple[str, ...]:
    """Return linker flags for a program that reports its version as Kubernetes' programs do."""
    major, minor, _ = version.removeprefix("v").split(".", 2)
    told = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return ("-s", "-w", *(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in told.items()))


def _given() -> dict[str, Path]:
    """Return the programs in KUBEBUILDER_ASSETS; none if it is not set."""
    value = os.environ.get("KUBEBUILDER_ASSETS")
    if not value:
        return {}
    folder = Path(value).absolute()
    if not folder.is_dir():
        raise EnvtestError(f"KUBEBUILDER_ASSETS={value}: there is no such folder")
    return {name: folder / name for name in _NAMES if os.access(folder / name, os.X_OK)}


def _cached(module: GoModule, progress: Progress) -> Path:
    try:
        return cached_programs(module, progress)
    except EnvtestError as error:
        names = ", ".join(module.programs)
        raise EnvtestError(
            f"cannot build {names}: {error}\n"
            "Do one of these:\n"
            "- set KUBEBUILDER_ASSETS to a folder that has etcd, kube-apiserver and"
            " kube-controller-manager;\n"
            f"- install Go {'.'.join(map(str, module.go_version))} or later, on PATH;\n"
            "- bring Go in with Python: pip install 'gardener-actuator[envtest]'.\n"
            "Building fetches modules from GOPROXY."
        ) from error
