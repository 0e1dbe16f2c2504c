"""The program helm: found, or built into the cache.

The order: the file in `ACTUATOR_HELM`, then PATH, then our cache, then a build from the module in
`assets/` (`generic.library.programs`). helm does not read the user's configuration.
Not here: running helm (`render`).
"""

import os
import shutil
from pathlib import Path

from generic.library.programs.cache import Progress
from generic.library.programs.errors import EnvtestError
from generic.library.programs.golang import GoModule, cached_programs, required_version

_VARIABLE = "ACTUATOR_HELM"
_MODULE = "helm.sh/helm/v3"
_ASSETS = Path(__file__).with_name("assets") / "helm"


def find_helm(progress: Progress) -> Path:
    """Return the path of helm. Raises EnvtestError with the ways to install it."""
    if given := os.environ.get(_VARIABLE):
        return _given(given)
    if found := shutil.which("helm"):
        return Path(found).absolute()
    module = helm_module()
    try:
        return cached_programs(module, progress) / "helm"
    except EnvtestError as error:
        raise EnvtestError(
            f"cannot build helm: {error}\n"
            "Do one of these:\n"
            f"- install helm, version 3, on PATH, or set {_VARIABLE} to its path;\n"
            f"- install Go {'.'.join(map(str, module.go_version))} or later, on PATH;\n"
            "- install Go with pip: pip install 'gardener-actuator[envtest]'.\n"
            "Building fetches modules from GOPROXY."
        ) from error


def helm_module() -> GoModule:
    """Return helm at the version in its go.mod; it knows the Kubernetes that it is built with."""
    version = required_version(_ASSETS, _MODULE)
    kubernetes_minor = required_version(_ASSETS, "k8s.io/client-go").split(".")[1]
    told = {
        "internal/version.version": version,
        "pkg/chartutil.k8sVersionMajor": "1",
        "pkg/chartutil.k8sVersionMinor": kubernetes_minor,
    }
    flags = (f"-X {_MODULE}/{name}={value}" for name, value in told.items())
    programs = {"helm": f"{_MODULE}/cmd/helm"}
    return GoModule(f"helm-{version}", _ASSETS, programs, ("-s", "-w", *flags))


def helm_environment(folder: Path) -> dict[str, str]:
    """Return an environment without the user's plugins, repositories and cluster, in `folder`."""
    homes = {
        f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")
    }
    return {"HOME": str(folder), "KUBECONFIG": os.devnull, "PATH": os.defpath, **homes}


def _given(value: str) -> Path:
    path = Path(value).absolute()
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise EnvtestError(f"{_VARIABLE}={value}: program not found")
    return path
