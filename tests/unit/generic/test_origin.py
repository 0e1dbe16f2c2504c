"""The origin of a deletion: from the Cluster, the object and the seed, whatever they contain."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator import Cluster
from actuator.codec import decode, encode
from actuator.interface import Actuator
from actuator.meta import ObjectMeta
from generic.reconciler.origin import MAX_LENGTH, DeletionOrigin, origin_of, version_of

SHOOT = {
    "metadata": {
        "name": "web",
        "namespace": "garden-dev",
        "uid": "u-1",
        "annotations": {"deletion.gardener.cloud/confirmed-by": "alice@example.com"},
    },
    "spec": {
        "credentialsBindingName": "aws",
        "seedName": "seed-of-shoot",
        "region": "eu-west-1",
    },
    "status": {
        "technicalID": "shoot--dev--web",
        "clusterIdentity": "shoot--dev--web-u-1-landscape-live",
    },
}
OBJECT = {
    "metadata": {"namespace": "shoot--dev--web", "name": "web"},
    "spec": {"secretRef": {"name": "cloudprovider", "namespace": "shoot--dev--web"}},
    "status": {"conditions": [{"type": "CloudAccount", "message": "123456789012"}]},
}


def cluster(shoot: Any = None, seed: Any = None, name: str = "shoot--dev--web") -> Cluster:
    """A Cluster as the API server returns it."""
    return decode(
        Cluster,
        {
            "metadata": {"name": name, "uid": "c"},
            "spec": {"shoot": shoot or {}, "seed": seed or {}, "cloudProfile": {}},
        },
    )


def found(cluster: Cluster, obj: Any = OBJECT) -> DeletionOrigin:
    return origin_of(cluster, obj, seed_identity="seed-id", extension_version="acme 1.2")


def test_every_value_comes_from_the_cluster_the_object_and_the_seed() -> None:
    assert found(cluster(SHOOT, {"metadata": {"name": "aws-eu1"}})) == DeletionOrigin(
        seed_identity="seed-id",
        seed="aws-eu1",
        garden="landscape-live",
        project="dev",
        shoot="web",
        shoot_uid="u-1",
        region="eu-west-1",
        credentials="CredentialsBinding garden-dev/aws",
        account="123456789012",
        extension_version="acme 1.2",
        confirmed_by="alice@example.com",
    )


def test_the_namespace_gives_project_and_shoot_without_a_cluster() -> None:
    origin = found(Cluster(metadata=ObjectMeta(name="shoot--dev--web")))
    assert (origin.project, origin.shoot, origin.shoot_uid) == ("dev", "web", "unknown")
    assert origin.credentials == "Secret shoot--dev--web/cloudprovider"


def test_an_object_outside_shoots_has_no_values_of_a_shoot() -> None:
    origin = found(Cluster(metadata=ObjectMeta(name="garden")), {"metadata": {"name": "bucket"}})
    assert (origin.project, origin.shoot, origin.garden, origin.confirmed_by) == ("", "", "", "")
    assert (origin.seed, origin.account, origin.credentials) == ("unknown",) * 3


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"status": {"clusterIdentity": "of-another-form"}}, "garden", "unknown"),
        ({"spec": {"secretBindingName": "old"}}, "credentials", "SecretBinding garden-dev/old"),
        ({"status": {}}, "project", "dev"),
        ({"spec": {"seedName": "seed-of-shoot"}}, "seed", "seed-of-shoot"),
        ({"metadata": {"annotations": None}}, "confirmed_by", "unknown"),
        ({"spec": {"region": ["eu-west-1"]}}, "region", "unknown"),
        ({"metadata": {"name": "x" * 1000}}, "shoot", "x" * MAX_LENGTH),
    ],
)
def test_a_missing_or_long_value_has_its_replacement(change: Any, field: str, value: str) -> None:
    assert getattr(found(cluster({**SHOOT, **change})), field) == value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=400),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["metadata", "name", "annotations", "status", "spec", "conditions"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(shoot=st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), VALUES), obj=VALUES)
def test_no_content_raises_and_every_value_is_a_bounded_text(shoot: Any, obj: Any) -> None:
    given_object = obj if isinstance(obj, dict) else {}
    values = encode(found(cluster(shoot), given_object)).values()
    assert all(isinstance(value, str) and len(value) <= MAX_LENGTH for value in values)


def test_the_version_is_that_of_the_distribution_of_the_author() -> None:
    name, _, version = version_of(_InstalledElsewhere()).partition(" ")
    assert (name, bool(version)) == ("pytest", True)
    assert version_of(_OfNoDistribution()) == ""


Imported = Callable[[str], Actuator[Any]]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Imported]:
    """Import a module of a folder without a distribution, and return an actuator of it."""
    name = f"extension_{tmp_path.name.replace('-', '_')}"

    def load(place: str) -> Actuator[Any]:
        file = tmp_path / place.format(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            "from tests.support.cluster.harness import Script\nclass Own(Script): pass\n"
        )
        monkeypatch.syspath_prepend(tmp_path / ("src" if place.startswith("src/") else ""))
        module = f"{name}.mine" if place.endswith("mine.py") else name
        made: Actuator[Any] = importlib.import_module(module).Own()
        return made

    yield load
    for module in [item for item in sys.modules if item.startswith(name)]:
        del sys.modules[module]


PROJECT = '[project]\nname = "acme"\nversion = "1.2"\n'
PLACES = ("{}.py", "{}/__init__.py", "{}/mine.py", "src/{}/__init__.py", "src/{}/mine.py")


@pytest.mark.parametrize("place", PLACES)
def test_without_a_distribution_the_version_is_that_of_the_project_beside_the_module(
    imported: Imported, tmp_path: Path, place: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    assert version_of(imported(place)) == "acme 1.2 (pyproject.toml)"


@pytest.mark.parametrize("place", PLACES)
def test_an_editable_installation_has_the_version_of_its_distribution(
    imported: Imported, tmp_path: Path, place: str
) -> None:
    """The metadata of an editable wheel need not name packages (PEP 660)."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "acme"\ndynamic = ["version"]\n')
    actuator = imported(place)
    for folder in (tmp_path, tmp_path / "src"):
        info = folder / "acme-3.4.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 3.4\n")
    importlib.invalidate_caches()
    assert version_of(actuator) == "acme 3.4"


@pytest.mark.parametrize(
    "content", [None, "", "[tool.x]\n", "not TOML", '[project]\nname = "acme"\n', "\x00"], ids=ascii
)
def test_a_project_without_a_version_has_none(
    imported: Imported, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "pyproject.toml").write_text(content)
    assert version_of(imported("{}.py")) == ""


class _OfNoDistribution(Actuator[Any]):
    """An actuator in a file that belongs to no distribution."""

    __module__ = "unpackaged_module"

    def reconcile(self, ctx: Any, obj: Any, cluster: Cluster, /) -> None: ...

    def delete(self, ctx: Any, obj: Any, cluster: Cluster, /) -> None: ...


class _InstalledElsewhere(Actuator[Any]):
    """An actuator in the module of an installed distribution."""

    __module__ = "pytest.anything"

    def reconcile(self, ctx: Any, obj: Any, cluster: Cluster, /) -> None: ...

    def delete(self, ctx: Any, obj: Any, cluster: Cluster, /) -> None: ...
