"""Options of the cluster-autoscaler for a pool, as annotations of its machine deployments.

The cluster-autoscaler reads these annotations (Gardener documentation, "Worker";
pkg/api/extensions/v1alpha1/helper/worker.go of gardener).
"""

import re
from fractions import Fraction

from actuator.errors import ConfigurationError
from actuator.v1alpha1 import ClusterAutoscalerOptions, Worker, WorkerPool
from generic.library.worker.poolhash import pool_field

_PREFIX = "autoscaler.gardener.cloud/"
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_UNITS["h"] = 60 * _UNITS["m"]
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h)", re.ASCII)


def autoscaler_annotations(worker: Worker, pool: WorkerPool) -> dict[str, str]:
    """Return an annotation for each option; "" for an option that the pool does not set.

    Thresholds are copied, durations are written as Go writes them. Raises ConfigurationError.
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
        try:
            found[name] = go_duration(text) if text else ""
        except ValueError as error:
            path = pool_field(worker, pool, f"clusterAutoscaler.{name}")
            raise ConfigurationError(f"{path}: {error}; correct it in the Shoot") from None
    return {_PREFIX + _dashed(name): value for name, value in found.items()}


def go_duration(text: str) -> str:
    """Return a duration such as "90m" as Go's `time.Duration` writes it: "1h30m0s".

    Raises ValueError for a text that is not a duration of at least 0.
    """
    parts = _PART.findall(text)
    if text != "0" and (not parts or "".join(map("".join, parts)) != text):
        raise ValueError(f"expected a duration such as 30m or 1h30m0s, got {text!r}")
    nanoseconds = int(sum(Fraction(number) * _UNITS[unit] for number, unit in parts))
    if 0 < nanoseconds < _UNITS["s"]:
        unit = next(unit for unit in ("ms", "µs", "ns") if nanoseconds >= _UNITS[unit])
        return f"{_decimal(nanoseconds, _UNITS[unit])}{unit}"
    hours, rest = divmod(nanoseconds, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    shown = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{shown}{_decimal(rest, _UNITS['s'])}s"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _dashed(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"-{letter[0].lower()}", name)
