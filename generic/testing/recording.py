"""A Context and a Client for unit tests of an actuator: they record what it asked for.

    ctx = RecordingContext(secret)
    Network(cloud).reconcile(ctx, infrastructure, Cluster())
    assert ctx.steps == ["get secrets shoot--a--b/cloudprovider", "save", "check"]

RecordingContext is the framework's own Context. RecordingClient is not an API server: it has no
schemas, evaluates no patches, and no controllers run. For these use `generic.testing.fixtures`.
"""

import logging
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import attrs

from actuator.codec import encode
from actuator.errors import NotFound
from actuator.interface import Client, Resource, SeedObjects, resource_of
from actuator.meta import Object, Raw
from generic.controller import logs
from generic.kube.clock import SystemClock
from generic.kube.headers import Request
from generic.reconciler.calls import Call, FencedClient
from generic.reconciler.operation import Operation
from generic.testing.garden import resource_of_manifest

__all__ = ["Recorded", "RecordingClient", "RecordingContext"]


@attrs.frozen
class Recorded:
    """A request; `body` is the object or the patch."""

    verb: str
    resource: Resource
    name: str
    namespace: str
    body: Any = None

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} {self.namespace}/{self.name}".rstrip("/ ")


class RecordingClient:
    """A Client with the given objects, to which requests add others; `requests` has them all."""

    def __init__(self, *objects: Object | Raw, steps: list[str] | None = None) -> None:
        """`steps` receives each request as text."""
        self.requests: list[Recorded] = []
        self._steps = [] if steps is None else steps
        self._objects: dict[tuple[str, str, str], Raw] = {}
        for one in objects:
            if isinstance(one, Object):
                head = {"apiVersion": one.KIND.api_version, "kind": one.KIND.name}
                self._put(resource_of(one.KIND), encode(one) | head)
            else:
                self._put(resource_of_manifest(one), one)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Raw:
        """See Client."""
        return self._found(Recorded("get", resource, name, namespace))

    def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = ""
    ) -> list[Raw]:
        """See Client. Raises NotImplementedError for a selector other than `key=value,…`."""
        self._record(Recorded("list", resource, "", namespace))
        wanted = [tuple(pair.split("=")) for pair in label_selector.split(",") if pair]
        if any(len(pair) != 2 or pair[0].endswith("!") for pair in wanted):
            given = f"list {resource}: RecordingClient cannot evaluate {label_selector!r}"
            raise NotImplementedError(f"{given}; select by key=value, or use the fixture seed")
        return [
            deepcopy(obj)
            for (plural, where, _), obj in self._objects.items()
            if (plural, namespace or where) == (str(resource), where)
            and {*wanted} <= {*(obj["metadata"].get("labels") or {}).items()}
        ]

    def create(self, resource: Resource, obj: Raw) -> Raw:
        """See Client."""
        return self._put(resource, obj, "create")

    def apply(self, resource: Resource, obj: Raw, **options: Any) -> Raw:
        """See Client; the object replaces an existing one."""
        return self._put(resource, obj, "apply")

    def patch(
        self, resource: Resource, name: str, namespace: str, patch: Any, **options: Any
    ) -> Raw:
        """Record the patch, and return the object as it was."""
        return self._found(Recorded("patch", resource, name, namespace, patch))

    def delete(self, resource: Resource, name: str, namespace: str = "", **options: Any) -> None:
        """See Client."""
        self._found(Recorded("delete", resource, name, namespace))
        del self._objects[str(resource), namespace, name]

    def _record(self, request: Recorded) -> None:
        self.requests.append(request)
        self._steps.append(str(request))

    def _found(self, request: Recorded) -> Raw:
        self._record(request)
        found = self._objects.get((str(request.resource), request.namespace, request.name))
        if found is None:
            raise NotFound(
                404, f"{request}: not found; if it has to exist, pass it to the recorder"
            )
        return deepcopy(found)

    def _put(self, resource: Resource, obj: Raw, verb: str = "") -> Raw:
        meta, kept = obj["metadata"], deepcopy(obj)
        name, namespace = meta["name"], meta.get("namespace", "")
        if verb:
            self._record(Recorded(verb, resource, name, namespace, kept))
        self._objects[str(resource), namespace, name] = kept
        return deepcopy(obj)


class RecordingContext(Call):
    """A Context whose client has the given objects. `cancel` ends it, as the framework does."""

    def __init__(
        self,
        *objects: Object | Raw,
        shoot: Client | None = None,
        garden: Client | None = None,
        seconds: float = 60.0,
    ) -> None:
        """`shoot` and `garden` are by default empty; `seconds` is the time until the deadline."""
        self.steps: list[str] = []
        """Requests to the seed, saves, checks, events and deletions of seed objects, in order."""
        self.saved: list[Any] = []
        """A copy of the object at each save."""
        recorder = RecordingClient(*objects, steps=self.steps)
        self.requests = recorder.requests
        services = _Services(
            recorder, self.steps, shoot or RecordingClient(), garden or RecordingClient()
        )
        self.logs = services.lines
        super().__init__(Operation.RECONCILE, services, SystemClock(), lambda: None, seconds)

    def check(self) -> None:
        """See Context."""
        self.steps.append("check")
        super().check()

    def save(self, obj: Object) -> None:
        """See Context."""
        super().save(obj)
        self.saved.append(deepcopy(obj))


class _Services(logging.Handler):
    """The services of a RecordingContext, and the handler of its log."""

    def __init__(self, client: Client, steps: list[str], shoot: Client, garden: Client) -> None:
        super().__init__()
        self.client = client
        self.lines: list[str] = []
        self._steps, self._shoot, self._garden = steps, shoot, garden
        logger = logging.Logger("actuator")  # noqa: LOG001 - of this context alone
        logger.addHandler(self)
        self.log = logs.bind(logger)
        self.formatter = logs.TextFormatter(tracebacks=False, colour=False)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record).partition(" ")[2])  # without the time

    def event(self, reason: str, message: str, *, warning: bool) -> None:
        self._steps.append(f"{'warning' if warning else 'event'} {reason}: {message}")

    def save(self) -> None:
        self._steps.append("save")

    def secret(self, call: Call, secret: Request) -> Raw:
        return self.client.get(Resource("v1", "secrets"), secret.name, secret.namespace)

    def shoot(self, call: Call) -> Client:
        return FencedClient(self._shoot, call.permit)

    def garden(self, call: Call) -> Client:
        return FencedClient(self._garden, call.permit)

    def delete_seed_objects(self, call: Call, groups: Iterable[SeedObjects]) -> None:
        self._steps.extend(f"delete seed objects {group.resource}" for group in groups)
