"""A Context and a Client for unit tests of an actuator: they record what it asked for.

RecordingContext is the framework's own Context. RecordingClient is not an API server: it has no
schemas, evaluates no patches, and no controllers run. For these use `generic.testing.fixtures`.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast
from uuid import NAMESPACE_URL, uuid5

from actuator.codec import encode, plain_json
from actuator.errors import AlreadyExists, NotFound
from actuator.interface import Client, Resource, SeedObjects, resource_of
from actuator.meta import Base64, Object, Raw
from generic.kube.clock import SystemClock
from generic.kube.models import read_as, resource_of_class
from generic.library.manifests import manifest
from generic.reconciler.calls import Call, FencedClient
from generic.reconciler.operation import Operation
from generic.serving import logs
from generic.testing.garden import resource_of_manifest
from generic.testing.minimal import NAMESPACE

__all__ = ["RecordingClient", "RecordingContext"]

F = TypeVar("F", bound=Callable[..., Any])
_LOGGER = logging.getLogger(__name__)
_LOGGER.setLevel(logging.DEBUG)  # also without `caplog.set_level`
MAX_BODY = 3 * 2**20
"""Maximum bytes of a request that an API server reads."""


def _recorded(method: F) -> F:
    """Return a method with the signature of this method of Client."""
    parameters = signature(method)
    verb = method.__name__

    @wraps(method)
    def request(self: "RecordingClient", *given: Any, **named: Any) -> Any:
        request = parameters.bind(self, *given, **named)
        request.apply_defaults()
        arguments = {
            name: argument for name, argument in request.arguments.items() if name != "self"
        }
        return self._answer(verb, **arguments)

    return cast(F, request)


class RecordingClient:
    """A Client with the given objects, to which create and apply add others.

    It raises NotFound for any other object, AlreadyExists as an API server does,
    NotImplementedError for a label selector other than `key=value,…`, and TypeError or ValueError
    for a body that is no JSON. It only records patches.
    """

    def __init__(self, *objects: Object | Raw) -> None:
        self._objects: dict[tuple[str, str, str], Raw] = {}
        self.steps: list[str] = []
        """The requests, such as `create configmaps shoot--a--b/one`."""
        self.bodies: dict[str, Any] = {}
        """The object or the patch of each request that has one; of equal requests, the last."""
        for object_ in objects:
            if isinstance(object_, Object):
                head = {"apiVersion": object_.KIND.api_version, "kind": object_.KIND.name}
                self.create(resource_of(object_.KIND), encode(object_) | head)
            else:
                self.create(resource_of_manifest(object_), object_)
        self.steps.clear()
        self.bodies.clear()

    get = _recorded(Client.get)
    list = _recorded(Client.list)
    create = _recorded(Client.create)
    apply = _recorded(Client.apply)
    patch = _recorded(Client.patch)
    delete = _recorded(Client.delete)

    def _answer(
        self, verb: str, resource: Any, name: str = "", namespace: str = "", **given: Any
    ) -> Any:
        if not isinstance(resource, Resource):
            found = self._answer(verb, resource_of_class(resource), name, namespace, **given)
            if verb == "list":
                return [read_as(resource, obj) for obj in found]
            return read_as(resource, found)
        obj = given.get("obj")
        selector = given.get("label_selector", "")
        if obj is not None:
            name = obj["metadata"]["name"]
            namespace = obj["metadata"].get("namespace", "")
        where = "/".join(filter(None, (namespace, name)))
        step = f"{verb} {resource} {where}".rstrip()
        key = (str(resource), namespace, name)
        self.steps.append(step)
        if verb == "list":
            return [*self._listed(str(resource), namespace, selector)]
        if (body := given.get("patch", obj)) is not None:
            self.bodies[step] = plain_json(body, MAX_BODY)
        if verb == "create" and key in self._objects:
            raise AlreadyExists(409, f"{step}: it exists")
        if obj is not None:
            self._objects[key] = plain_json(obj, MAX_BODY)
            uid = str(uuid5(NAMESPACE_URL, "/".join(key)))  # an API server sets one, too
            self._objects[key]["metadata"].setdefault("uid", uid)
        if key not in self._objects:
            raise NotFound(404, f"{step}: not found; if it has to exist, pass it to the recorder")
        if verb == "delete":
            del self._objects[key]
            return None
        return deepcopy(self._objects[key])

    def _listed(self, plural: str, namespace: str, selector: str) -> Iterable[Raw]:
        wanted = [tuple(pair.split("=")) for pair in selector.split(",") if pair]
        if any(len(pair) != 2 or pair[0].endswith("!") for pair in wanted):
            text = f"RecordingClient cannot evaluate {selector!r}; select by key=value"
            raise NotImplementedError(f"list {plural}: {text}, or use the fixture seed")
        for (kind, where, _), obj in self._objects.items():
            labels = obj["metadata"].get("labels") or {}
            if (kind, namespace or where) == (plural, where) and {*wanted} <= {*labels.items()}:
                yield deepcopy(obj)


class RecordingContext(Call):
    """A Context whose client has the given objects. `cancel` ends it, as the framework does."""

    def __init__(
        self,
        *objects: Object | Raw,
        shoot: Client | None = None,
        garden: Client | None = None,
        seconds: float = 60.0,
        config: Any = None,
        credentials: Mapping[str, str] | None = None,
    ) -> None:
        """`shoot` and `garden` are by default empty; `seconds` is the time until the deadline.

        `config` is the configuration of the object, for a Worker a list of those of its pools. The
        texts of `credentials` are in the Secret to which a `minimal_object` refers.
        """
        texts = credentials or {}
        data = {key: Base64.encode_bytes(text.encode()) for key, text in texts.items()}
        secrets = [manifest("v1", "Secret", "cloudprovider", NAMESPACE, data=data)] if data else []
        recorder = RecordingClient(*objects, *secrets)
        self.steps: list[str] = recorder.steps
        """Requests to the seed, saves, checks, events and deletions of seed objects, in order."""
        self.bodies: dict[str, Any] = recorder.bodies
        self.saved: list[Any] = []
        """A copy of the object at each save."""
        self._before_save: list[Callable[[], None]] = []
        super().__init__(Operation.RECONCILE, recorder, SystemClock(), lambda: None, seconds)
        self.log: logging.LoggerAdapter[logging.Logger] = logs.bind(_LOGGER)
        self.config = config
        self._shoot = FencedClient(shoot or RecordingClient(), self.permit)
        self._garden = FencedClient(garden or RecordingClient(), self.permit)

    def pool_config(self, index: int) -> Any:
        """See Context."""
        return self.config[index]

    @property
    def shoot(self) -> Client:
        """See Context."""
        self.permit()
        return self._shoot

    @property
    def garden(self) -> Client:
        """See Context."""
        self.permit()
        return self._garden

    def check(self) -> None:
        """See Context."""
        self.steps.append("check")
        super().check()

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """See Context."""
        self.permit()
        self.steps.append(f"{'warning' if warning else 'event'} {reason}: {message}")

    def before_save(self, call: Callable[[], None]) -> None:
        """Call this function from now on at each save, before it takes effect."""
        self._before_save.append(call)

    def save(self, obj: Object) -> None:
        """See Context."""
        self.permit()
        for call in self._before_save:
            call()
        self.steps.append("save")
        self.saved.append(deepcopy(obj))

    def delete_seed_objects(self, groups: Iterable[SeedObjects]) -> None:
        """See Context."""
        self.permit()
        self.steps.extend(f"delete seed objects {group.resource}" for group in groups)
