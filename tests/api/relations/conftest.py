"""The sample's kinds in the cluster, its actuators under their generated Role, a register."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actuator.interface import object_class
from actuator.meta import Object
from extensions.relations.external import Entries
from extensions.relations.kinds import Entry, Mirror, Team
from extensions.relations.owned import Teams
from extensions.relations.register import Register
from extensions.relations.watched import Mirrors
from generic.testing.garden import NAMESPACES
from generic.testing.seed import install_crds
from tests.support.samples.relations import CONFIG_MAPS, Look, config_map


@pytest.fixture(scope="session", autouse=True)
def kinds(admin) -> None:
    install_crds(admin, [Team, Mirror, Entry])


@pytest.fixture
def register(tmp_path) -> Register:
    made = Register(tmp_path / "register.sqlite")
    made.open()
    return made


@pytest.fixture
def serve(start, register) -> Callable[..., None]:
    """Starts managers for these of the sample's kinds, and for objects of this test alone."""

    def server(*kinds: type[Object]) -> None:
        for actuator in (Teams(), Mirrors(), Entries(register)):
            if object_class(actuator) in kinds:
                start(actuator)

    return server


@pytest.fixture
def make(admin, namespace) -> Callable[..., Look]:
    """Creates an object of a kind, of the type that the managers of this test serve."""

    def maker(cls: type[Object], name: str = "x", **spec: object) -> Look:
        look = Look(admin, cls, namespace if cls.KIND.namespaced else "", name)
        look.create(type=namespace, **spec)
        return look

    return maker


@pytest.fixture
def elsewhere(admin, namespace):
    """The name of another namespace."""
    name = f"{namespace}-b"
    meta = {"metadata": {"name": name}}
    admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", **meta})
    return name


@pytest.fixture
def foreign(admin) -> Callable[..., None]:
    """Creates a ConfigMap that is not of the sample."""

    def maker(namespace: str, name: str, **data: str) -> None:
        admin.create(CONFIG_MAPS, config_map(namespace, name, **data))

    return maker
