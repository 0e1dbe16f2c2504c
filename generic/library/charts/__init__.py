"""Charts: renders charts to manifests with the real helm, without a cluster, and provides helm."""

from generic.library.charts.helm import find_helm, helm_environment
from generic.library.charts.render import Chart, render, said_of_chart

__all__ = ["Chart", "find_helm", "helm_environment", "render", "said_of_chart"]
