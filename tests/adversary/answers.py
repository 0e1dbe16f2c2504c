"""The seed's API server answers wrongly: to a manager, about objects that are in etcd.

Between a manager and the real API server is a proxy. Each input is the life of one Infrastructure:
created, migrated or not, deleted or force-deleted, while some of its requests get the answers of
`lies`. Other answers lack a part of the status, watches have bookmarks of earlier versions, and
every answer has a Warning. After the lies, the object has to be finished.
"""

from __future__ import annotations

import json
import logging
import random
import re
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from actuator import Actuator
from actuator.cluster import Cluster
from actuator.errors import NotFound
from actuator.interface import resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import HttpClient, connect
from generic.kube.clusters import CLUSTERS, NAMESPACES
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.orphans import RECORD_KINDS
from generic.reconciler.reporter import DeletionEnded
from generic.serving.metrics import Outcome
from generic.testing.drill.names import Names
from generic.testing.envtest import Environment
from generic.testing.seed import install_crds
from tests.adversary.inputs import rng_of
from tests.adversary.judge import Report, said
from tests.adversary.lies import Lie, lie_of
from tests.support.cluster.fault_proxy import Answer, HttpProxy, kubeconfig
from tests.support.objects.builders import cluster, infrastructure

__all__ = ["attack_answers"]

RESOURCE = resource_of(Infrastructure.KIND)
FINALIZER = Infrastructure.KIND.finalizer
PATIENCE = 90.0
"""Seconds until an object is finished: the backoff of a deletion ends at 60 s."""
SHOWN_SECONDS = 20.0
_UNSEEN_SECONDS = 1.5
"""Seconds for a reason in the status, and for lies whose effect is not seen there."""
_ALIVE = 32
_BUDGET = 4.0
_WARNING = {"Warning": '299 - "unknown field \\"status.state\\""'}
_OBJECT = re.compile(r"/infrastructures/([^/?]+)(/status)?")
_STAGES = ("finalizer", "finalizer", "finalizer", "status", "all", "dropped")


class Quiet(Actuator[Infrastructure]):
    """Has nothing outside, and succeeds at once."""

    def reconcile(self, ctx: Any, infrastructure: Infrastructure, cluster: Any) -> None:
        """See Actuator."""

    def delete(self, ctx: Any, infrastructure: Infrastructure, cluster: Any) -> None:
        """See Actuator."""


@attrs.define(eq=False)
class _Lying:
    lie: Lie
    stage: str
    left: float
    hits: int = 0

    def meets(self, method: str, is_status: bool) -> bool:
        """Count a request, and return whether it gets the lie."""
        wanted = {
            "finalizer": method == "PATCH" and not is_status,
            "status": is_status,
            "all": True,
            "dropped": is_status,
        }
        if not wanted[self.stage] or self.left <= 0:
            return False
        self.left = self.left - 1
        self.hits = self.hits + 1
        return True


@attrs.define(eq=False)
class Lives:
    """The lives of one attack. `ended` has the final outcomes that the manager counted, by uid."""

    admin: HttpClient
    namespaces: Sequence[str]
    type: str
    seed: int
    report: Report
    lying: dict[str, _Lying] = attrs.field(factory=dict)
    ended: defaultdict[str, list[Outcome]] = attrs.field(factory=lambda: defaultdict(list))
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    rng: random.Random = attrs.field(factory=lambda: random.Random(0))

    def rule(self, method: str, target: str) -> str | Answer:
        """Return the request to forward, or the answer of the proxy."""
        found = _OBJECT.search(target)
        lying = self.lying.get(found[1]) if found else None
        if not found or lying is None or lying.stage == "dropped":
            return target
        return lying.lie.answer if lying.meets(method, bool(found[2])) else target

    def edit(self, method: str, target: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the answer as the proxy changes it."""
        if "watch=true" in target and "/infrastructures?" in target:
            return self._with_old_bookmarks(pieces)
        found = _OBJECT.search(target)
        lying = self.lying.get(found[1]) if found else None
        if found and lying and lying.stage == "dropped" and lying.meets(method, bool(found[2])):
            return self._without_parts(b"".join(pieces))
        return pieces

    def _without_parts(self, body: bytes) -> Iterator[bytes]:
        obj = json.loads(body)
        for field in list(obj.get("status") or ()):
            if self.rng.random() < 0.5:
                del obj["status"][field]
        yield json.dumps(obj).encode()

    def _with_old_bookmarks(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        pending = b""
        for piece in pieces:
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                yield line + b"\n"
                event = json.loads(line)
                meta = event["object"].get("metadata") or {}
                if event["type"] == "MODIFIED" and self.rng.random() < 0.02:
                    version = str(max(1, int(meta["resourceVersion"]) - self.rng.randint(1, 50)))
                    yield json.dumps(_bookmark(version)).encode() + b"\n"

    def on_end(self, end: DeletionEnded) -> None:
        """A listener of the manager."""
        if end.outcome.final:
            with self.lock:
                self.ended[end.uid].append(end.outcome)

    def live(self, number: int) -> None:
        """One life."""
        rng = rng_of(self.seed, "answers", number)
        namespace = rng.choice(self.namespaces)
        name = f"n{number}"
        with self._lies(rng, namespace, name, left=rng.randint(0, 3)):
            made = self.admin.create(RESOURCE, infrastructure(namespace, self.type, name))
            uid = made["metadata"]["uid"]
            if not self._reaches(namespace, name, "Succeeded"):
                self._complain("finished", number, self._get(namespace, name))
        with self._lies(rng, namespace, name) as lying:
            migrates = rng.random() < 0.2
            if migrates:
                patch = {"metadata": {"annotations": {"gardener.cloud/operation": "migrate"}}}
                self.admin.patch(RESOURCE, name, namespace, patch)
            self.admin.delete(RESOURCE, name, namespace)
            self._judge(number, namespace, name, uid, lying, shows=not migrates)
        if not _wait(lambda: self._get(namespace, name) is None, PATIENCE):
            self._complain("finished", number, self._get(namespace, name))
        elif not migrates and not _wait(lambda: len(self.ended[uid]) == 1, SHOWN_SECONDS):
            self.report.complain("finished", f"--only {number}", f"outcomes: {self.ended[uid]}")
        self.report.counts["lived"] += 1

    def _judge(
        self, number: int, namespace: str, name: str, uid: str, lying: _Lying, *, shows: bool
    ) -> None:
        wanted = lying.lie.reason
        if shows and lying.stage == "finalizer":
            if not _wait(lambda: _reason(self._get(namespace, name)) == wanted, SHOWN_SECONDS):
                found = self._get(namespace, name)
                self.report.complain("reason", f"--only {number}", f"{lying.lie}: {said(found)}")
            self.report.counts["shown"] += 1
        else:
            _wait(lambda: lying.hits >= 3, _UNSEEN_SECONDS)
        has_ended = bool(self.ended[uid])  # first: the manager may release the object any moment
        obj = self._get(namespace, name)
        is_held = obj is not None and FINALIZER in (obj["metadata"].get("finalizers") or ())
        if is_held and has_ended:
            self._complain("forgotten", number, obj)
        if not is_held and lying.stage in ("finalizer", "all"):
            self._complain("forgotten", number, obj)  # the patch reached nothing

    @contextmanager
    def _lies(
        self, rng: random.Random, namespace: str, name: str, left: float = float("inf")
    ) -> Iterator[_Lying]:
        lying = _Lying(lie_of(rng, namespace, name), rng.choice(_STAGES), left)
        self.lying[name] = lying
        try:
            yield lying
        finally:
            del self.lying[name]

    def _reaches(self, namespace: str, name: str, state: str) -> bool:
        def reached() -> bool:
            status = (self._get(namespace, name) or {}).get("status") or {}
            return (status.get("lastOperation") or {}).get("state") == state

        return _wait(reached, PATIENCE)

    def _get(self, namespace: str, name: str) -> Raw | None:
        try:
            return self.admin.get(RESOURCE, name, namespace)
        except NotFound:
            return None

    def _complain(self, rule: str, number: int, obj: Raw | None) -> None:
        self.report.complain(rule, f"--only {number}", said(obj))


def attack_answers(
    environment: Environment, seed: int, numbers: Sequence[int], folder: Path, report: Report
) -> None:
    """Let these inputs live."""
    names = Names()
    admin = connect(environment.kubeconfig, connections=_ALIVE)
    install_crds(admin, [Cluster, *RECORD_KINDS, Infrastructure])
    namespaces = [f"{names.type}-plain", f"{names.type}-forced"]
    for namespace, force in zip(namespaces, (None, "true"), strict=True):
        admin.create(NAMESPACES, {"metadata": {"name": namespace}})
        admin.create(CLUSTERS, cluster(namespace, force=force))
    lives = Lives(admin, namespaces, names.type, seed, report)
    with _proxy(environment, lives) as url, _log(folder / "answers.log"):
        options = Options(
            kubeconfig=kubeconfig(Path(tempfile.mkdtemp(dir=folder)) / "kubeconfig", url),
            metrics_bind_address="0",
            health_bind_address="0",
            leader_election=False,
            force_delete_budget=_BUDGET,
            max_concurrent_reconciles=_ALIVE,
        )
        manager = Manager(options, listeners=[lives.on_end])
        manager.add(Quiet(), type=names.type)
        manager.start()
        try:
            with ThreadPoolExecutor(_ALIVE) as pool:
                list(pool.map(lives.live, numbers))
        finally:
            manager.stop()


@contextmanager
def _proxy(environment: Environment, lives: Lives) -> Iterator[str]:
    proxy = HttpProxy(environment)
    proxy.rule = lives.rule
    proxy.edit = lives.edit
    proxy.headers = _WARNING
    try:
        yield proxy.url
    finally:
        proxy.close()


@contextmanager
def _log(path: Path) -> Iterator[None]:
    """Keep the manager's log in a file: each lie is a line of it."""
    logger = logging.getLogger("generic")
    handler = logging.FileHandler(path)
    propagates = logger.propagate
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
        handler.close()


def _bookmark(version: str) -> Raw:
    meta = {"resourceVersion": version}
    obj = {"apiVersion": RESOURCE.api_version, "kind": "Infrastructure", "metadata": meta}
    return {"type": "BOOKMARK", "object": obj}


def _reason(obj: Raw | None) -> str:
    conditions = ((obj or {}).get("status") or {}).get("conditions") or []
    found = (
        condition["reason"] for condition in conditions if condition["type"] == "DeletionBlocked"
    )
    return next(found, "")


def _wait(check: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
