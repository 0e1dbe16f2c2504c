"""The sample for Helm releases in other clusters, modelled on Cluster API's Helm addon provider.

    actuator dev extensions.helmreleaseproxy:extension
    actuator drill extensions.helmreleaseproxy.rehearsal:HelmReleaseProxyRehearsal \
        --scenario everything-fails

Read in this order: `kinds` (the API for users), `helmchartproxy` and `helmreleaseproxy` (the
actuators), `order` (dependencies in deletions and force deletions), `targets` (whether a Target
exists, is deleted, or is unknown), `releases` and `helm` (the commands), `charts` (the operator's
folder) and `repositories` (charts from elsewhere); `rehearsal` is for drills.
"""

import logging
import os
from pathlib import Path

import generic
from extensions.helmreleaseproxy.helm import Helm
from extensions.helmreleaseproxy.helmchartproxy import HelmCharts
from extensions.helmreleaseproxy.helmreleaseproxy import HelmReleases
from extensions.helmreleaseproxy.targets import TARGETS_ONLY, with_cluster_api
from generic.library.charts import find_helm

CHARTS = Path(__file__).with_name("library")
"""The sample's own charts."""


def extension(manager: generic.Manager) -> None:
    """Add both actuators to a manager.

    The charts are in the folder that the environment variable HELM_CHARTS names, by default the
    sample's own. CLUSTER_API_VERSION, v1beta1 or v1beta2, adds Cluster API's Clusters to the
    Targets. SSL_CERT_FILE and SSL_CERT_DIR are passed on to helm. Raises EnvtestError if there is
    no helm, and none can be built.
    """
    charts = Path(os.environ.get("HELM_CHARTS") or CHARTS)
    version = os.environ.get("CLUSTER_API_VERSION")
    places = with_cluster_api(version) if version else TARGETS_ONLY
    trust = {name: text for name, text in os.environ.items() if name.startswith("SSL_CERT_")}
    helm = Helm(find_helm(logging.getLogger(__name__).info), trust)
    manager.add(HelmCharts(charts, places))
    manager.add(HelmReleases(helm, charts, places))
