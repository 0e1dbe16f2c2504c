"""Two clusters: one with our kinds, whose managers run under their Roles, and one to install in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from extensions.helmreleaseproxy import CHARTS
from extensions.helmreleaseproxy.helm import Helm
from extensions.helmreleaseproxy.helmchartproxy import HelmCharts
from extensions.helmreleaseproxy.helmreleaseproxy import HelmReleases
from extensions.helmreleaseproxy.kinds import HelmChartProxy, HelmReleaseProxy, Target
from extensions.helmreleaseproxy.targets import TARGETS_ONLY, Places
from generic.kube.client import connect
from generic.library.charts import find_helm
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.envtest.access import ClusterAccess
from generic.testing.seed import install_crds
from hack.faults import FaultProxy
from tests.support.cluster.harness import PATIENCE, connected
from tests.support.samples.helm import Cluster, Way


@pytest.fixture(scope="session")
def helm() -> Path:
    """The real one."""
    return find_helm(logging.getLogger(__name__).info)


@pytest.fixture(scope="session")
def far(environment) -> ClusterAccess:
    """The cluster to install in: the session's, whose namespaces tell the tests apart."""
    access: ClusterAccess = environment
    return access


@pytest.fixture
def way(far, tmp_path) -> Iterator[Way]:
    """The way to it, which can be closed."""
    with FaultProxy(far.kubeconfig, tmp_path) as proxy:
        yield Way(proxy, connect(far.kubeconfig))


@pytest.fixture
def near(admin, namespace, way) -> Cluster:
    """The cluster with our kinds, in a namespace of this test."""
    install_crds(admin, [Target, HelmChartProxy, HelmReleaseProxy])
    return Cluster(admin, namespace, way)


@pytest.fixture
def serve(environment, admin, namespace, helm, near) -> Iterator[Callable[..., Manager]]:
    """Starts a manager of both kinds for the namespace of this test, under its Role."""
    with ExitStack() as stack:

        def start(
            *,
            program: Helm | None = None,
            of_charts: type[HelmCharts] = HelmCharts,
            places: Places = TARGETS_ONLY,
            **more: Any,
        ) -> Manager:
            options = Options(metrics_bind_address="0", health_bind_address="0")
            manager = Manager(options, **more)
            releases = HelmReleases(program or Helm(helm), CHARTS, places)
            for actuator in (of_charts(CHARTS, places), releases):
                manager.add(actuator, namespaces=[namespace])
            stack.enter_context(connected(environment, admin, manager, namespace))
            manager.start()
            assert manager.wait_synced(PATIENCE)
            return manager

        yield start
