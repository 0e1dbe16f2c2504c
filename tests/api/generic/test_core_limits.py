"""Limits of the reconciling core: the frames above an author's method, and threads without I/O."""

import sys
import threading
from functools import partial
from types import FrameType
from typing import Any

from actuator.v1alpha1 import Extension
from generic.kube.delegating import DelegatingClient
from tests.support.cluster.harness import Script, eventually, running
from tests.support.objects.builders import cluster, infrastructure

FRAMES = 6


def frames_above():
    """The frames of the framework between the worker's thread and the actuator's method."""
    frame: FrameType | None = sys._getframe(2)
    found = []
    while frame is not None:
        if "/generic/" in frame.f_code.co_filename:
            found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found


class Counting(Script):
    """Keeps the frames above each of its operations."""

    def __init__(self):
        super().__init__()
        self.frames = {}

    def _run(self, operation, ctx, obj, cluster):
        self.frames[operation] = frames_above()
        return super()._run(operation, ctx, obj, cluster)


def test_at_most_six_frames_are_above_an_operation(seed, start):
    script = Counting()
    start(script)
    for name in ("deleted", "forced", "moved"):
        seed.create(infrastructure(seed.namespace, seed.namespace, name=name))
        eventually(lambda name=name: seed.is_ready(name))
    seed.ask("migrate", "moved")
    eventually(lambda: "migrate" in script.frames)
    seed.delete("deleted")
    eventually(lambda: "delete" in script.frames)
    seed.update_cluster(cluster(seed.namespace, force="true"))
    seed.delete("forced")
    eventually(lambda: "force_delete" in script.frames)
    for operation, frames in script.frames.items():
        assert len(frames) <= FRAMES, (operation, frames)
        assert frames[-1] == "_work"


class Guarded(DelegatingClient):
    """Refuses requests from threads that must not wait."""

    def __init__(self, inner, refused):
        super().__init__(inner)
        self._refused = refused

    def _around(self, request):
        name = threading.current_thread().name
        if "worker" not in name and name not in ("orphans", "later"):
            self._refused.append(name)
        return request()


def test_no_informer_and_no_scrape_makes_a_request(environment, admin, seed):
    """Also of a kind that may live outside a shoot, whose namespace is looked up then."""
    refused: list[Any] = []
    script = Script(Extension)
    seed.delete_cluster()
    objects = seed.of(Extension, "one")
    manifest = infrastructure(seed.namespace, seed.namespace, name="one")
    intercept = partial(Guarded, refused=refused)
    with running(environment, admin, seed.namespace, script, intercept=intercept) as manager:
        objects.create({**manifest, "kind": "Extension", "spec": {"type": seed.namespace}})
        eventually(objects.is_ready)
        objects.delete()
        manager.metrics.total("actuator_terminating_objects", "state")
        eventually(objects.is_gone)
    assert script.operations("one") == ["reconcile", "delete"]
    assert refused == []
