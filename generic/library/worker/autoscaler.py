"""Options of the cluster-autoscaler for a pool, as annotations of its machine deployments.

The cluster-autoscaler reads these annotations (Gardener documentation, "Worker";
pkg/api/extensions/v1alpha1/helper/worker.go of gardener).
"""

import re

from actuator.errors import ConfigurationError
from actuator.v1alpha1 import ClusterAutoscalerOptions, Worker, WorkerPool
from generic.library.worker.poolhash import pool_field

_PREFIX = "autoscaler.gardener.cloud/"
_DURATION = re.compile(r"0|(?:\d{1,12}(?:\.\d{1,9})?(?:ns|us|µs|ms|s|m|h))+", re.ASCII)


def autoscaler_annotations(worker: Worker, pool: WorkerPool) -> dict[str, str]:
    """Return an annotation for each option; "" for an option that the pool does not set.

    Values are copied: gardenlet writes durations as Go does, "1h30m0s". Raises ConfigurationError.
    """
    options = pool.cluster_autoscaler or ClusterAutoscalerOptions()
    durations = {
        "scaleDownUnneededTime": options.scale_down_unneeded_time,
        "scaleDownUnreadyTime": options.scale_down_unready_time,
        "maxNodeProvisionTime": options.max_node_provision_time,
    }
    found = {
        "scaleDownUtilizationThreshold": options.scale_down_utilization_threshold or "",
        "scaleDownGpuUtilizationThreshold": options.scale_down_gpu_utilization_threshold or "",
    }
    for name, text in durations.items():
        if text and not _DURATION.fullmatch(text):
            path = pool_field(worker, pool, f"clusterAutoscaler.{name}")
            raise ConfigurationError(
                f"{path}: expected a duration such as 30m or 1h30m0s, got {text!r}; correct it in "
                "the Shoot"
            )
        found[name] = text or ""
    dashed = {re.sub("([A-Z])", r"-\1", name).lower(): value for name, value in found.items()}
    return {f"{_PREFIX}{name}": value for name, value in dashed.items()}
