"""An extension that every version of the framework can run.

    versioned_extension.py TYPE FOLDER FLAGS…

An object is named by its namespace, TYPE-NAME. Names in FOLDER/fail have calls that fail, names in
FOLDER/hang calls that wait; FOLDER/calls has one line for each call: operation, name, state.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from actuator import Actuator, ActuatorError, Cluster, Context, ErrorCode, ExternalResource
from actuator.provider_status import write_status
from actuator.v1alpha1 import Infrastructure
from generic import Manager


@attrs.frozen(kw_only=True)
class NetworkStatus:
    """The record of the VPC."""

    api_version: str
    kind: str
    vpc: str


class Versioned(Actuator[Infrastructure]):
    """One VPC for each object, and a state to restore it from."""

    def __init__(self, type: str, folder: Path) -> None:
        self.type = type
        self.folder = folder

    def _call(self, operation: str, ctx: Context, obj: Infrastructure) -> None:
        name = obj.metadata.namespace.removeprefix(f"{self.type}-")
        with (self.folder / "calls").open("a") as calls:
            calls.write(f"{operation} {name} {json.dumps(obj.status.state)}\n")
        while self._listed(name, "hang"):
            ctx.check()
            time.sleep(0.05)
        if self._listed(name, "fail"):
            codes = [ErrorCode.ERR_INFRA_DEPENDENCIES]
            raise ActuatorError("the VPC is in use", codes=codes)

    def _listed(self, name: str, file: str) -> bool:
        path = self.folder / file
        return path.exists() and name in path.read_text().split()

    def reconcile(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        self._call("reconcile", ctx, infrastructure)
        vpc = f"vpc-{infrastructure.metadata.namespace}"
        record = NetworkStatus(api_version="example.org/v1", kind="NetworkStatus", vpc=vpc)
        write_status(infrastructure.status, record)

    def restore(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        self._call("restore", ctx, infrastructure)

    def migrate(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        self._call("migrate", ctx, infrastructure)

    def delete(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        self._call("delete", ctx, infrastructure)

    def force_delete(self, ctx: Context, infrastructure: Infrastructure, cluster: Cluster) -> None:
        self._call("force_delete", ctx, infrastructure)

    def external_resources(self, obj: Infrastructure) -> Iterable[ExternalResource]:
        status: Any = obj.status.provider_status or {}
        yield ExternalResource(type="vpc", id=str(status.get("vpc", "")), region="eu-1")


if __name__ == "__main__":
    manager = Manager.from_args(sys.argv[3:])
    manager.add(Versioned(sys.argv[1], Path(sys.argv[2])), type=sys.argv[1])
    manager.run()
