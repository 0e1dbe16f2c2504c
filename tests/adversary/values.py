"""Values that an actuator may return, raise or store: tables, and the actuator that does it.

The name of an object contains its number; seed and number decide about its treatment.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from actuator import errors
from actuator.cluster import Cluster
from actuator.interface import (
    Actuator,
    ExternalResource,
    FieldProblem,
    Provisioned,
    Resource,
    Result,
    SeedObjects,
)
from actuator.meta import DefaultStatus, Object, Raw
from generic.library.healthchecks.model import HealthContext, HealthResult, HealthStatus

__all__ = ["BUDGET", "CONDITION", "HANG", "LABEL", "Adversary", "plan"]

BUDGET = 5.0
"""Seconds for one force deletion."""
CONDITION = "EveryNodeReady"
HANG = 14.0
LABEL = "adversary.actuator.extensions.gardener.cloud/seed-object"
_BIG = "x" * 2_000_000
_TEXTS = ("a=1&b=2", "<html>502</html>", "für", "\u2028", "\x1b[31m\x00", "\ud800", "", _BIG)
_CODES: tuple[Any, ...] = ([object()], None, "text", 5, [[]], ["\x1b<&"], ["x"] * 100_000)
_HEALTH: tuple[Any, ...] = ("Odd", None, 5, [])


def _gives(value: object) -> Callable[[], Any]:
    return lambda: value


def _speaks(
    says: Callable[[], object], base: type[BaseException] = Exception
) -> Callable[[], BaseException]:
    return lambda: type("Odd\x1b<&", (base,), {"__str__": lambda _self: says()})("odd")


def _throws(error: type[BaseException]) -> Callable[[], object]:
    def throw() -> object:
        raise error("no text")

    return throw


def _with(error: BaseException, **attributes: object) -> BaseException:
    for name, attribute in attributes.items():
        setattr(error, name, attribute)
    return error


def _chain(length: int, *, cyclic: bool) -> BaseException:
    errors_ = [errors.ActuatorError(f"number {n}") for n in range(length)]
    for item, cause in pairwise(errors_):
        item.__cause__ = cause
    if cyclic:
        errors_[-1].__cause__ = errors_[0]
    return errors_[0]


def _deep(levels: int) -> Any:
    found: Any = None
    for _ in range(levels):
        found = {"a": found}
    return found


def _cyclic() -> Any:
    found: dict[str, Any] = {}
    found["a"] = [found]
    return found


async def _coroutine() -> None:
    """Never awaited."""


def _endless() -> Iterable[Any]:
    while True:
        yield ExternalResource(type="t", id="same")


def _endless_problems() -> Iterable[FieldProblem]:
    while True:
        yield FieldProblem(field="spec", detail="again")


_ERRORS: tuple[Callable[[], BaseException], ...] = (
    *(lambda text=text: errors.ActuatorError(text) for text in _TEXTS),
    *(lambda text=text: ValueError(text) for text in _TEXTS),
    lambda: _chain(2, cyclic=True),
    lambda: _chain(1, cyclic=True),
    lambda: _chain(5_000, cyclic=False),
    *(
        _speaks(_throws(item))
        for item in (ValueError, SystemExit, KeyboardInterrupt, RecursionError)
    ),
    *(_speaks(_gives(text)) for text in (5, None, b"x", _BIG)),
    _speaks(lambda: time.sleep(HANG)),
    lambda: SystemExit(0),
    lambda: KeyboardInterrupt("me"),
    lambda: GeneratorExit("me"),
    lambda: StopIteration(3),
    MemoryError,
    lambda: BaseExceptionGroup("g", [SystemExit(1), ExceptionGroup("h", [ValueError(_BIG)])]),
    *(lambda codes=codes: _with(errors.ActuatorError("codes"), codes=codes) for codes in _CODES),
    *(
        lambda item=item: _with(errors.ActuatorError("reason"), reason=item)
        for item in (5, object(), "not a word <&>", _BIG)
    ),
    *(
        lambda item=item: _with(errors.RequeueAfter(1, cause=ValueError("x")), seconds=item)
        for item in ("soon", None, float("nan"), -1, 1e300, object())
    ),
    *(
        lambda item=item: errors.ApiError(429, "later", retry_after=item)
        for item in ("soon", float("nan"), 1e300)
    ),
    lambda: errors.ApiError("x", "y"),  # type: ignore[arg-type]
    lambda: errors.Unavailable(0, _BIG),
    *(
        lambda cls=cls: cls("hostile")
        for cls in (errors.LeaseLost, errors.CallAbandoned, errors.DecodeError)
    ),
)
_VALUES: tuple[Callable[[], Any], ...] = (
    *map(_gives, (False, 0, 30, "", "done", b"", (), [], {}, float("nan"), Result)),
    lambda: errors.RequeueAfter(30),
    lambda: ValueError("returned"),
    _coroutine,
    lambda: (n for n in "x"),
    object,
    Cluster,
    type("Falsy", (), {"__bool__": lambda _self: 1 / 0}),
)
_STATES: tuple[Callable[[], Any], ...] = (
    *(
        _gives({"a": number})
        for number in (float("nan"), float("inf"), 2**63, 10**5000, -0.0, 1e308)
    ),
    *(_gives({"a": text}) for text in _TEXTS),
    *(_gives({key: 1}) for key in (*_TEXTS[:-1], 1, None, (1, 2), b"x", object())),
    *(_gives({"a": item}) for item in (b"x", {1}, object(), SimpleNamespace(a=1), Result, 1j)),
    *map(_gives, ([1], "text", 5, False, object(), b"x")),
    *(lambda levels=levels: _deep(levels) for levels in (150, 300, 990, 5000, 20_000)),
    _cyclic,
    lambda: {"a": ["x"] * 700_000},
)
_RESOURCES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: 5,
    lambda: ["text", None, 5],
    _endless,
    *(
        lambda item=item: [ExternalResource(type="t", id=item)]
        for item in (_BIG, b"x", 5, None, "\ud800", object())
    ),
    *(
        lambda item=item: [ExternalResource(type=item, id="i")]
        for item in (_BIG, b"x", 5, None, object())
    ),
    *(
        lambda item=item: [ExternalResource(type="t", tags=item)]
        for item in (None, 5, {"a": 1}, {1: "a"}, {"a": _BIG}, {None: object()}, [("a", "b")])
    ),
    lambda: (1 / 0 for _ in "x"),
    lambda: time.sleep(HANG),
    lambda: [ExternalResource(type="t", id=str(n)) for n in range(20_000)],
)
_CHECKS: tuple[Callable[[], Any], ...] = (
    *(lambda text=text: HealthResult.unhealthy(text) for text in _TEXTS),
    *(lambda status=status: HealthResult(status=status) for status in _HEALTH),
    *(
        lambda item=item: HealthResult.progressing("p", item)
        for item in ("soon", float("nan"), -1, object())
    ),
    *(lambda item=item: HealthResult.unhealthy("c", item) for item in ([object()], ["\x1b"], [5])),
    lambda: HealthResult(status=HealthStatus.FALSE, detail=5),  # type: ignore[arg-type]
    lambda: time.sleep(HANG),
)
_PROBLEMS: tuple[Callable[[], Any], ...] = (
    *map(_gives, (5, None, ["text"], [None], "text", {"a": 1})),
    *(lambda text=text: [FieldProblem(field="spec", detail=text)] for text in _TEXTS),
    lambda: [FieldProblem(field=5, detail=object())],  # type: ignore[arg-type]
    lambda: [FieldProblem(field="a", detail="b", internal="x")] * 100_000,  # type: ignore[arg-type]
    lambda: (1 / 0 for _ in "x"),
    _endless_problems,
)
_WAITS: tuple[Callable[[], Any], ...] = (
    *(lambda s=s, text=text: errors.RequeueAfter(s, text) for s in (1, 30) for text in _TEXTS),
    *(
        lambda item=item: _with(errors.RequeueAfter(1), cause=item)
        for item in ("text", 5, object())
    ),
)


def _odd_result() -> Result:
    found = Result(requeue_after=1)
    object.__setattr__(found, "requeue_after", "soon")
    return found


_TABLES: dict[str, tuple[Callable[[], Any], ...]] = {
    **{f"{item} raises": _ERRORS for item in ("reconcile", "delete", "force_delete")},
    **{
        f"{item} returns": (*_VALUES, Result, Provisioned)
        for item in ("delete", "force_delete", "migrate")
    },
    **{
        f"{item} hangs": (lambda: time.sleep(HANG),)
        for item in ("reconcile", "delete", "force_delete")
    },
    "reconcile returns": (*_VALUES, _odd_result),
    "reconcile waits": _WAITS,
    "reconcile states": _STATES,
    "delete states": _STATES,
    "delete tries": tuple(map(_gives, _TEXTS[:-1])),
    "validate returns": _PROBLEMS,
    "external_resources returns": _RESOURCES,
    "check returns": _CHECKS,
}
_WEIGHTS = [0.2 if place.endswith("hangs") else 1.0 for place in _TABLES]


def plan(rng: random.Random) -> tuple[str, Callable[[], Any]]:
    """The place where the actuator misbehaves for one object, and the value raised or returned."""
    place = rng.choices(list(_TABLES), _WEIGHTS)[0]
    return place, rng.choice(_TABLES[place])


_GROUPS = (SeedObjects(Resource("v1", "configmaps"), label_selector=LABEL),)


class Adversary(Actuator[Any, Raw]):
    """Misbehaves as planned for objects of the family "values"; with all others it is sane."""

    permissions = (
        Resource("v1", "secrets").permission("get"),
        Resource("v1", "configmaps").permission("get", "list", "delete"),
    )

    def __init__(self, of: type[Object], seed: int) -> None:
        self.of = of
        self.seed_objects = _GROUPS if of.KIND.namespaced else ()
        self._seed = seed
        self._tries: Counter[str] = Counter()

    def validate(self, ctx, obj, cluster):
        return self._act("validate", obj) if self._is_hostile(obj, "validate") else ()

    def reconcile(self, ctx, obj, cluster):
        self._look(ctx, obj, cluster)
        if isinstance(obj.status, DefaultStatus):
            obj.status.provider_status = obj.spec.provider_config
        return self._act("reconcile", obj)

    def delete(self, ctx, obj, cluster):
        self._look(ctx, obj, cluster)
        if self._planned(obj)[0].startswith("external_resources"):
            raise errors.ActuatorError("only a forced deletion gets there")
        return self._act("delete", obj)

    def migrate(self, ctx, obj, cluster):
        return self._act("migrate", obj)

    def force_delete(self, ctx, obj, cluster):
        ctx.delete_seed_objects(_GROUPS)  # out of scope for an object without a namespace
        return self._act("force_delete", obj)

    def external_resources(self, obj):
        return self._act("external_resources", obj) if self._is_hostile(obj, "external") else ()

    def still_exists(self, resource):
        return random.Random(str(resource)).choice((*_VALUES, lambda: True, lambda: None))()

    def check(self, ctx: HealthContext) -> HealthResult:
        if self._is_hostile(ctx.obj, "check"):
            return self._act("check", ctx.obj)
        return HealthResult.unhealthy("it is never well", ())

    def _planned(self, obj: Any) -> tuple[str, Callable[[], Any]]:
        found = re.search(r"values-\d+$", obj.metadata.name)
        return plan(random.Random(f"{self._seed}-{found[0]}")) if found else ("", lambda: None)

    def _is_hostile(self, obj: Any, place: str) -> bool:
        return self._planned(obj)[0].startswith(place)

    def _act(self, operation: str, obj: Any) -> Any:
        place, make = self._planned(obj)
        if place.partition(" ")[0] != operation:
            return None
        made = make()
        if place.endswith(("raises", "waits")):
            raise made
        if place.endswith("tries"):
            self._tries[obj.metadata.uid] += 1
            raise errors.ActuatorError(f"try {self._tries[obj.metadata.uid]}: {made}")
        if place.endswith("states"):
            field = "provider_status" if isinstance(obj.status, DefaultStatus) else "conditions"
            setattr(obj.status, field, made)
            return None
        return made

    def _look(self, ctx: Any, obj: Any, cluster: Cluster) -> None:
        """At everything that is offered: each answer has to be one, whatever the shoot says."""
        for name, var in vars(Cluster).items():
            if isinstance(var, property):
                getattr(cluster, name)
        secret = getattr(obj.spec, "secret_ref", None)
        if secret is not None and secret.name:
            ctx.secret(secret.name, secret.namespace or obj.metadata.namespace)
