"""Charts as manifests, rendered by the real helm without a cluster, and where helm comes from."""

from generic.charts.helm import HelmNotFound, find_helm
from generic.charts.render import Chart, render

__all__ = ["Chart", "HelmNotFound", "find_helm", "render"]
