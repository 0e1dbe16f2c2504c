"""The table of images: which images run as a local process, and with which command line.

The programs are ours. From a pod's spec come flags, of which a program gets those that this module
knows, with paths inside the container replaced by local ones. So a pod can start no other program.
Addresses become ports of the loopback address. A kubeconfig is rebuilt with one server and one
credential: it could name a program, or a file of this machine.

Not here: the paths that a pod may name (`containers`), processes (`kubelet`).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from actuator.meta import Raw
from generic.kube.kubeconfig import write_kubeconfig
from generic.testing.envtest.servers import ETCD_CLIENTS, HOST
from generic.testing.landscape.containers import (
    Derived,
    Image,
    Launch,
    PlannedContainer,
    check_paths,
)
from generic.testing.landscape.pods import Missing, PodRefused

_APISERVER = (
    *("--allow-privileged", "--api-audiences", "--authentication-config", "--client-ca-file"),
    *("--disable-admission-plugins", "--enable-admission-plugins", "--enable-bootstrap-token-auth"),
    *("--encryption-provider-config", "--feature-gates", "--kubelet-client-", "--proxy-client-"),
    *("--requestheader-", "--runtime-config", "--service-account-", "--service-cluster-ip-range"),
    *("--tls-cert-file", "--tls-private-key-file", "--tls-sni-cert-key", "--token-auth-file"),
)
_CONTROLLER_MANAGER = (
    *("--allocate-node-cidrs", "--cluster-", "--concurrent-", "--controllers", "--feature-gates"),
    *("--horizontal-pod-autoscaler-", "--kube-api-", "--leader-elect", "--node-", "--root-ca-file"),
    *("--service-account-private-key-file", "--service-cluster-ip-range", "--v="),
    *("--terminated-pod-gc-threshold", "--use-service-account-credentials"),
)
"""Flags, or beginnings of flags, that a program gets as the pod has them."""
_OF_CLUSTERS = ("server", "certificate-authority-data", "tls-server-name")
_OF_USERS = ("token", "client-certificate-data", "client-key-data")
_FILES = ("certificate-authority", "tokenFile", "client-certificate", "client-key")
_RUNS_PROGRAMS = ("exec", "auth-provider")
_HTTPS = 443
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SERVERS = ("healthProbes", "metrics", "webhooks")
_CLIENTS = ("sourceClientConnection", "targetClientConnection")
_EXTENSION_REFUSED = (
    *("--config-file", "--context", "--kubeconfig", "--master", "--webhook-config-cert-dir"),
)


def kubeconfig(container: PlannedContainer, content: bytes) -> bytes:
    """Return a kubeconfig with the current server and credential alone, and local paths.

    Raises Refused: a kubeconfig can name programs, and files of this machine.
    """
    with _reading("a kubeconfig"):
        config = _parsed(content.decode())
        contexts, clusters, users = (
            {item["name"]: item[kind] for item in config[f"{kind}s"]}
            for kind in ("context", "cluster", "user")
        )
        context = contexts[config["current-context"]]
        user = users[context["user"]]
        for key in _RUNS_PROGRAMS:
            if user.get(key):
                raise PodRefused(f"a kubeconfig of the pod has {key!r}, which would run a program.")
        cluster = _kept(container, clusters[context["cluster"]], _OF_CLUSTERS)
        user = _kept(container, user, _OF_USERS)
    return write_kubeconfig(cluster, user, "x")


def _kept(container: PlannedContainer, fields: Raw, known: tuple[str, ...]) -> Raw:
    kept = {key: str(fields[key]) for key in known if fields.get(key)}
    files = {key: container.local(str(fields[key])) for key in _FILES if fields.get(key)}
    for path in files.values():
        if ".." in path or not Path(path).is_relative_to(container.root):
            raise PodRefused(
                "a kubeconfig of the pod names a file that is in no volume of the pod."
            )
    return kept | files


def resource_manager_config(container: PlannedContainer, content: bytes) -> bytes:
    """Return the configuration of gardener-resource-manager with local ports and paths.

    Raises Refused.
    """
    with _reading("the configuration of gardener-resource-manager"):
        config = _parsed(container.local(content.decode()))
        for name in _SERVERS:
            server = config.setdefault("server", {}).setdefault(name, {})
            server.update(port=container.port(server.get("port") or 0), bindAddress=HOST)
        for name in _kubeconfigs(config):
            config[name]["kubeconfig"] = str(container.folder / f"{name}.kubeconfig")
        text = json.dumps(config)
    check_paths([text], container.root)
    return text.encode()


def _kubeconfigs(config: Raw) -> dict[str, str]:
    """Return the paths of kubeconfigs in the configuration of gardener-resource-manager."""
    paths = {name: (config.get(name) or {}).get("kubeconfig") for name in _CLIENTS}
    return {name: str(path) for name, path in paths.items() if path}


def resource_manager(program: Sequence[str | Path], container: PlannedContainer) -> Launch:
    """Run gardener-resource-manager, for the seed or for a shoot."""
    source = Path(container.flag("config"))
    target = container.folder / "config.json"
    check_paths([str(source)], container.root)
    with _reading("the configuration of gardener-resource-manager"):
        paths = _kubeconfigs(_parsed(container.local(_content(source))))
    check_paths(paths.values(), container.root)
    derived = [Derived(source, target, partial(resource_manager_config, container))]
    for name, path in paths.items():
        rebuilt = container.folder / f"{name}.kubeconfig"
        derived.append(Derived(Path(path), rebuilt, partial(kubeconfig, container)))
    environ = _environ(container)
    if "targetClientConnection" not in paths and container.kubeconfig:
        environ["TARGET_KUBECONFIG"] = str(container.kubeconfig)
    return Launch([*program, f"--config={target}"], (), environ, derived=derived)


def kube_apiserver(
    program: Path, etcd: Callable[[str], Path], container: PlannedContainer
) -> Launch:
    """Run the API server of a shoot, in the folder of its etcd: `etcd` starts it if needed."""
    port = container.flag("secure-port")
    local_port = container.port(int(port) if port.isdecimal() else _HTTPS)
    ours: list[str | Path] = [
        program,
        f"--etcd-servers=unix://{ETCD_CLIENTS}",
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={local_port}",
        "--authorization-mode=Node,RBAC",
        "--endpoint-reconciler-type=none",  # a loopback address is not a valid endpoint
    ]
    arguments = container.flags(_APISERVER)
    folder = etcd(container.namespace)
    return Launch(ours, arguments, _environ(container), cwd=folder)


def kube_controller_manager(program: Path, container: PlannedContainer) -> Launch:
    """Run kube-controller-manager of a shoot. It does not listen."""
    source = Path(container.flag("kubeconfig"))
    target = container.folder / "kubeconfig"
    check_paths([str(source)], container.root)
    ours: list[str | Path] = [program, f"--kubeconfig={target}", "--secure-port=0"]
    derived = [Derived(source, target, partial(kubeconfig, container))]
    arguments = container.flags(_CONTROLLER_MANAGER)
    return Launch(ours, arguments, _environ(container), derived=derived)


def extension(
    program: Sequence[str | Path],
    target: str,
    environ: Mapping[str, str],
    cwd: Path,
    container: PlannedContainer,
) -> Launch:
    """Run an extension of this framework: `program` is `actuator run`, `target` MODULE:OBJECT.

    `cwd` is where Python finds the module, so it must not be a folder of the pod.
    """
    first, *flags = container.arguments or [""]
    if first != target:
        raise PodRefused(f"the first argument is {first[:100]!r}, not {target!r}.")
    for flag in flags:
        if not flag.startswith("--") or flag.partition("=")[0] in _EXTENSION_REFUSED:
            raise PodRefused(f"the argument {flag[:100]!r} is not supported; use --FLAG=VALUE.")
    arguments = [_local_address(container, flag) for flag in flags]
    variables = _environ(container) | {"NO_PROXY": f"{HOST},localhost"} | dict(environ)
    return Launch([*program, target], arguments, variables, cwd)


def _local_address(container: PlannedContainer, flag: str) -> str:
    name, _, value = flag.partition("=")
    port = value.rpartition(":")[2]
    if name == "--webhook-config-server-host":
        return f"{name}={HOST}"
    if not port.isdecimal() or port == "0":
        return flag
    if name in ("--metrics-bind-address", "--health-bind-address"):
        return f"{name}={HOST}:{container.port(int(port))}"
    if name == "--webhook-config-server-port":
        return f"{name}={container.port(int(port))}"
    return flag


def _environ(container: PlannedContainer) -> dict[str, str]:
    """Return the variables with which a program reaches the cluster and its Services."""
    account = {"KUBECONFIG": str(container.kubeconfig)} if container.kubeconfig else {}
    return {"HTTPS_PROXY": container.proxy_url, **account}


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        raise Missing(f"the file {path.name!r} does not exist yet.") from None


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Raises Refused in place of the errors that unexpected content causes."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError):
        raise PodRefused(f"{what} of the pod cannot be read.") from None


def _parsed(text: str) -> dict[str, Any]:
    """Return a YAML mapping without references, which can make a huge value of a small text.

    Raises ValueError.
    """
    try:
        events = yaml.parse(text, Loader=_LOADER)
        if any(getattr(event, "anchor", None) for event in events):
            raise ValueError("an anchor or an alias")
        found = yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe one
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not YAML: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise ValueError("not a mapping")  # noqa: TRY004 - one error for all contents
    return found


def landscape_images(
    kubernetes: Mapping[str, Path], gardener: Path, etcd: Callable[[str], Path]
) -> dict[str, Image]:
    """Return the images of Gardener's components in a seed, by the name of their repository.

    `kubernetes` has the programs of the embedded cluster, `gardener` is the program of all
    components, `etcd` starts the etcd of a namespace and returns its folder.
    """
    manager = "gardener-resource-manager"
    managing = Image((manager,), partial(resource_manager, (gardener, manager)), 1)
    apiserver = partial(kube_apiserver, kubernetes["kube-apiserver"], etcd)
    controllers = partial(kube_controller_manager, kubernetes["kube-controller-manager"])
    return {
        manager: managing,
        "resource-manager": managing,
        "kube-apiserver": Image(("kube-apiserver",), apiserver, 1),
        "kube-controller-manager": Image(("kube-controller-manager",), controllers, 1),
    }


def extension_image(
    program: Sequence[str | Path], target: str, environ: Mapping[str, str], cwd: Path
) -> Image:
    """Return the image of an extension; see `extension`."""
    return Image(("actuator", "run"), partial(extension, program, target, environ, cwd))
