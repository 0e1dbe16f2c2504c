"""The API server and the controller manager of a shoot run in pods of a seed, for real.

As in Gardener: certificates and kubeconfigs come from Secrets, the controller manager finds the
API server by the name of its Service, with a certificate for that name.
"""

from __future__ import annotations

import base64
import json

import pytest

from actuator.interface import CONFIG_MAPS, SECRETS
from generic.kube.client import connect
from generic.kube.clusters import NAMESPACES
from generic.kube.kubeconfig import InlineKubeconfig
from generic.testing.envtest.certificates import LocalAuthority, new_private_key
from generic.testing.landscape.caches import PODS
from tests.support.cluster.harness import eventually
from tests.support.landscape.pods import DEPLOYMENTS, Namespace

pytestmark = pytest.mark.long  # one worker starts the cluster, and keeps it

NAMES = ["kube-apiserver", "localhost", "127.0.0.1"]
APISERVER_FLAGS = [
    "--client-ca-file=/srv/pki/ca.crt",
    "--etcd-servers=https://etcd-main-client:2379",
    "--secure-port=443",
    "--service-account-issuer=https://issuer.example.com",
    "--service-account-key-file=/srv/pki/accounts.key",
    "--service-account-signing-key-file=/srv/pki/accounts.key",
    "--service-cluster-ip-range=10.4.0.0/24",
    "--tls-cert-file=/srv/pki/tls.crt",
    "--tls-private-key-file=/srv/pki/tls.key",
]
MANAGER_FLAGS = [
    "--kubeconfig=/srv/kubeconfig/kubeconfig",
    "--authentication-kubeconfig=/srv/kubeconfig/kubeconfig",
    "--controllers=serviceaccount-controller,root-ca-certificate-publisher-controller",
    "--leader-elect=false",
    "--root-ca-file=/srv/pki/ca.crt",
    "--secure-port=10257",
    "--tls-cert-file=/srv/pki/tls.crt",
]


class Shoot:
    """The control plane of a shoot in a namespace of the seed."""

    def __init__(self, place: Namespace) -> None:
        self.place = place
        self.authority = LocalAuthority.new("shoot")
        serving = self.authority.serving(NAMES)
        pki = {"ca.crt": self.authority.key_pair.certificate, "accounts.key": new_private_key()}
        self._secret("pki", {**pki, "tls.crt": serving.certificate, "tls.key": serving.key})
        self.admin = self.authority.client("admin", ["system:masters"])
        self._secret("kubeconfig", {"kubeconfig": self._of_manager(), **self._credential()})
        place.service("kube-apiserver", ports=[{"port": 443, "targetPort": 443}])

    def _secret(self, name: str, data: dict[str, bytes]) -> None:
        meta = {"name": name, "namespace": self.place.name}
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        self.place.client.create(SECRETS, {"metadata": meta, "data": encoded})

    def _credential(self) -> dict[str, bytes]:
        return {"tls.crt": self.admin.certificate, "tls.key": self.admin.key}

    def _of_manager(self) -> bytes:
        ca = base64.b64encode(self.authority.key_pair.certificate).decode()
        cluster = {"server": "https://kube-apiserver", "certificate-authority-data": ca}
        files = {f"client-{n}": f"/srv/kubeconfig/tls.{end}" for n, end in
                 (("certificate", "crt"), ("key", "key"))}  # fmt: skip
        context = {"cluster": "shoot", "user": "manager"}
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": context}],
            "clusters": [{"name": "shoot", "cluster": cluster}],
            "users": [{"name": "manager", "user": files}],
        }
        return json.dumps(config).encode()

    def deploy(self, name: str, port: int, flags: list[str], **probe) -> None:
        container = {
            "image": f"registry.example/{name}:v1.36.3",
            "command": [f"/usr/local/bin/{name}", flags[0]],
            "args": flags[1:],
            "ports": [{"name": "https", "containerPort": port}],
            "readinessProbe": probe or None,
            "volumeMounts": [
                {"name": item, "mountPath": f"/srv/{item}"} for item in ("pki", "kubeconfig")
            ],
        }
        volumes = [{"name": item, "secret": {"secretName": item}} for item in ("pki", "kubeconfig")]
        self.place.deploy(name, container, volumes=volumes, automountServiceAccountToken=False)
        self.place.wait_available(name)

    def deploy_apiserver(self) -> None:
        request = {"path": "/readyz", "port": 443, "scheme": "HTTPS"}
        self.deploy("kube-apiserver", 443, APISERVER_FLAGS, httpGet=request, periodSeconds=1)

    def connect(self):
        port = self.place.seed.router.find(self.place.name, "kube-apiserver", 443)[0]
        ca = self.authority.key_pair.certificate
        certificate = self.admin.certificate
        url = f"https://127.0.0.1:{port}"
        return connect(InlineKubeconfig(url, ca, certificate=certificate, key=self.admin.key))


@pytest.fixture
def shoot(place):
    made = Shoot(place)
    yield made
    for name in ("kube-controller-manager", "kube-apiserver"):
        place.client.patch(DEPLOYMENTS, name, place.name, {"spec": {"replicas": 0}})
    eventually(lambda: place.running() == [])
    place.seed.etcds.remove(place.name)


def test_the_control_plane_of_a_shoot_runs_and_keeps_its_objects(shoot):
    shoot.deploy_apiserver()
    shoot.deploy("kube-controller-manager", 10257, MANAGER_FLAGS)
    client = shoot.connect()
    client.create(NAMESPACES, {"metadata": {"name": "made-in-the-shoot"}})
    eventually(lambda: client.get(CONFIG_MAPS, "kube-root-ca.crt", "made-in-the-shoot"))
    place = shoot.place
    (derived,) = place.seed.processes.directory.glob("pods/*/containers/main/kubeconfig")
    assert derived.stat().st_mode & 0o077 == 0
    assert "/srv/" not in derived.read_text()
    (pod,) = [pod for pod in place.pods() if pod["metadata"]["labels"]["app"] == "kube-apiserver"]
    place.client.delete(PODS, pod["metadata"]["name"], place.name)
    eventually(lambda: place.is_gone(pod["metadata"]["name"]))
    place.wait_available("kube-apiserver")
    eventually(lambda: shoot.connect().get(NAMESPACES, "made-in-the-shoot"))
