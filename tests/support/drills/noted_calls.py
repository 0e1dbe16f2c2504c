"""A rehearsal whose actuators note each operation in a file, apart from the records of a drill."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from actuator.codec import encode
from actuator.interface import Actuator, WrappedActuator
from actuator.meta import Raw
from extensions.aws.rehearsal import AwsRehearsal

__all__ = ["FILE", "AwsNoted", "Noting", "read"]

FILE = "NOTED_CALLS"
"""The environment variable with the path of the file."""
T = TypeVar("T")


class Noting(WrappedActuator):
    """Writes a line for each operation; killed processes lose none that they wrote."""

    def _around(
        self, operation: str, work: Callable[..., T], ctx: Any, obj: Any, cluster: Any
    ) -> T:
        raw = encode(obj)
        line = {
            "process": os.getppid(),
            "operation": operation,
            "kind": raw["kind"],
            "shoot": raw["metadata"]["labels"]["shoot.gardener.cloud/technical-id"],
            "name": raw["metadata"]["name"],
            "at": time.monotonic(),
            "state": (raw.get("status") or {}).get("state"),
        }
        with Path(os.environ[FILE]).open("a") as file:
            file.write(f"{json.dumps(line)}\n")
        return work(ctx, obj, cluster)


class AwsNoted(AwsRehearsal):
    """The AWS sample."""

    def actuators(self) -> list[Actuator[Any]]:
        return [Noting(actuator) for actuator in super().actuators()]


def read(path: Path) -> list[Raw]:
    """The noted calls, in order."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]
