"""A real Prometheus operator, and the configuration that it generates.

The operator's StatefulSets start no pods here: a test reads the Secret and the ConfigMaps, and runs
Prometheus with them. Not here: Alertmanager (`alertmanager`).
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import yaml

from actuator.interface import CONFIG_MAPS, SECRETS, Client, Resource
from actuator.meta import Raw
from generic.kube.client import connect
from generic.testing.envtest import Environment
from generic.testing.envtest.servers import free_port
from generic.testing.seed import install_crds
from hack.observe.programs import find_program
from hack.processes import running

GROUP = "monitoring.coreos.com"
PROMETHEUSES = Resource(f"{GROUP}/v1", "prometheuses")
_MOUNTED = "/etc/prometheus/rules/"
"""Where the operator mounts the rules."""
_OF_A_POD = {"$(SHARD)": "0", "$(POD_NAME)": "prometheus-0"}
"""Variables that the operator's reloader replaces, beside each Prometheus."""
_JOB = re.compile(r"(\w+)/([^/]+)/([^/]+)(?:/\d+)?")
_KINDS = {"serviceMonitor", "podMonitor", "scrapeConfig"}


class _Loader(yaml.CSafeLoader):
    """Reads `=`, an enumeration's value in the operator's definitions, as text."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)


@attrs.frozen
class Generated:
    """The configuration and rules that the operator generated for a Prometheus object."""

    config: Raw
    rules: Mapping[str, Mapping[str, str]]
    """By ConfigMap: the rule files."""

    @property
    def scraped(self) -> list[tuple[str, str, str]]:
        """Kind, namespace and name of the object of each scrape configuration."""
        names = (item["job_name"] for item in self.config.get("scrape_configs") or ())
        found = [match.groups() for match in map(_JOB.fullmatch, names) if match]
        assert {kind for kind, _, _ in found} <= _KINDS
        return found  # type: ignore[return-value]

    @property
    def loaded(self) -> list[str]:
        """Namespace and name of the PrometheusRule of each rule file, as `namespace-name`."""
        names = [name for files in self.rules.values() for name in files]
        return [re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.yaml$", "", n) for n in names]

    def written(self, folder: Path, replaced: Mapping[str, str] | None = None) -> Path:
        """Write everything below a folder; return the path of the configuration."""
        folder.mkdir()
        for name, files in self.rules.items():
            (folder / name).mkdir()
            for file, text in files.items():
                (folder / name / file).write_text(text)
        text = json.dumps(self.config)  # JSON is YAML
        for old, new in {_MOUNTED: f"{folder}/", **_OF_A_POD, **(replaced or {})}.items():
            text = text.replace(old, new)
        path = folder / "prometheus.json"
        path.write_text(text)
        return path


def generated(client: Client, namespace: str, name: str) -> Generated:
    """Read the configuration that the operator generated. Raises NotFound."""
    secret = client.get(SECRETS, f"prometheus-{name}", namespace)
    packed = base64.b64decode(secret["data"]["prometheus.yaml.gz"])
    maps = [
        obj
        for obj in client.list(CONFIG_MAPS, namespace)
        if (obj["metadata"].get("labels") or {}).get("prometheus-name") == name
    ]
    rules = {obj["metadata"]["name"]: obj.get("data") or {} for obj in maps}
    return Generated(yaml.load(gzip.decompress(packed), yaml.CSafeLoader), rules)


def prometheus_object(
    environment: Environment, namespace: str, name: str, labels: Mapping[str, str], **more: Any
) -> Raw:
    """A Prometheus that selects objects of all namespaces by labels, as Gardener's does.

    It runs outside the cluster: it has credentials, and finds pods by EndpointSlices, because
    Endpoints may not have the address of this machine. It scrapes each second, not each minute.
    """
    spec: Raw = {
        "replicas": 1,
        "scrapeInterval": "1s",
        "evaluationInterval": "1s",
        "serviceDiscoveryRole": "EndpointSlice",
        "apiserverConfig": {
            "host": environment.url,
            "authorization": {"credentialsFile": str(environment.directory / "token")},
            "tlsConfig": {"caFile": str(environment.ca_file)},
        },
        **more,
    }
    for kind in ("rule", "serviceMonitor", "podMonitor", "scrapeConfig"):
        spec[f"{kind}Selector"] = {"matchLabels": dict(labels)}
        spec[f"{kind}NamespaceSelector"] = {}
    return {
        "apiVersion": PROMETHEUSES.api_version,
        "kind": "Prometheus",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


@contextmanager
def running_operator(environment: Environment, folder: Path) -> Iterator[None]:
    """The operator and its CustomResourceDefinitions, within the block."""
    program = str(find_program("prometheus-operator", print))
    printed = subprocess.run([program, "crds"], capture_output=True, check=True, timeout=60)
    crds = [crd for crd in yaml.load_all(printed.stdout, _Loader) if crd]
    install_crds(connect(environment.kubeconfig), crds)
    token = environment.directory / "token"
    token.touch(mode=0o600)
    token.write_text(environment.admin_token)
    address = f"127.0.0.1:{free_port()}"
    command = ["env", f"KUBECONFIG={environment.kubeconfig}", program]
    command += [f"--web.listen-address={address}", "--kubelet-endpoints=false"]
    with running(command, folder / "operator.log", address, "/healthz"):
        yield


@contextmanager
def running_prometheus(config: Path) -> Iterator[str]:
    """Prometheus with a configuration; yields its address."""
    program = str(find_program("prometheus", print))
    address = f"127.0.0.1:{free_port()}"
    command = [program, f"--config.file={config}", f"--web.listen-address={address}"]
    command += [f"--storage.tsdb.path={config.parent / 'data'}", "--log.level=warn"]
    with running(command, config.parent / "prometheus.log", address, "/-/ready"):
        yield address


def checked(config: Path) -> None:
    """Have promtool check a configuration with its rules; fail with its errors."""
    promtool = find_program("prometheus", print).with_name("promtool")
    command = [str(promtool), "check", "config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
