"""Charts: renders charts to manifests with the real helm, without a cluster, and provides helm."""

from generic.library.charts.helm import find_helm, helm_environment
from generic.library.charts.render import Chart, chart_message, render

__all__ = ["Chart", "chart_message", "find_helm", "helm_environment", "render"]
