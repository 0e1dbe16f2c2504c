"""Random scripts of faults, and scripts as JSON."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs

from actuator.codec import encode
from actuator.errors import ConfigurationError, DecodeError, ErrorCode
from hack.faults import (
    ActuatorEffect,
    ActuatorFault,
    Effect,
    Fault,
    FaultStep,
    KillableServer,
    Revoked,
)
from hack.faults.actuators import OPERATIONS
from tests.support.objects.strictly import decode_strictly


def to_json(script: Sequence[FaultStep]) -> str:
    """Return the script as indented JSON."""
    return json.dumps([encode(step) for step in script], indent=2) + "\n"


def from_json(text: str) -> list[FaultStep]:
    """Read the output of `to_json`. Raises ConfigurationError that names the problem."""
    try:
        return [decode_strictly(FaultStep, step) for step in json.loads(text)]
    except (ValueError, DecodeError) as error:
        raise ConfigurationError(f"the script cannot be read: {error}") from error


_Draw = Callable[[random.Random], FaultStep]
_SHORT = 0.2
_LONG = 5.0
_WRITES = ["patch", "create", "delete"]
_TIMED = (Effect.DELAY, Effect.STALL, Effect.DELAY_LINE, Effect.SILENCE)
_STATUSES = (403, 409, 410, 429, 500, 503, 504)


def _seed(rng: random.Random) -> int:
    return rng.randrange(2**31)


def _request(rng: random.Random) -> FaultStep:
    effect = rng.choice([e for e in Effect if not e.is_of_lines])
    answers = effect is Effect.ANSWER
    fault = Fault(
        effect=effect,
        verbs=rng.choice([[], _WRITES, ["patch"], ["get", "list", "watch"]]),
        probability=rng.choice([0.1, 0.3, 1.0]),
        seed=_seed(rng),
        seconds=_seconds(rng) if effect in _TIMED else 0.0,
        status=rng.choice(_STATUSES) if answers else 500,
        retry_after=rng.choice([0, 1]) if answers else 0,
    )
    return FaultStep(fault=fault)


def _stream(rng: random.Random) -> FaultStep:
    effect = rng.choice([e for e in Effect if e.is_of_lines])
    fault = Fault(
        effect=effect,
        times=rng.randint(1, 5),
        seconds=_seconds(rng) if effect in _TIMED else 0.0,
        status=rng.choice([410, 500]) if effect is Effect.STREAM_ERROR else 500,
    )
    return FaultStep(fault=fault)


def _actuator(rng: random.Random) -> FaultStep:
    fault = ActuatorFault(
        effect=rng.choice(list(ActuatorEffect)),
        operations=rng.choice([[], *([operation] for operation in OPERATIONS)]),
        probability=rng.choice([0.1, 0.5, 1.0]),
        seed=_seed(rng),
        seconds=_seconds(rng),
        codes=rng.choice([[], [ErrorCode.ERR_INFRA_UNAUTHENTICATED]]),
    )
    return FaultStep(actuator=fault)


def _permission(rng: random.Random) -> FaultStep:
    resource = rng.choice(["*", "*/status", "events", "leases", "clusters"])
    return FaultStep(
        revoke=Revoked(resource=resource, verbs=rng.choice([[], ["patch"], ["watch"]]))
    )


def _seconds(rng: random.Random) -> float:
    return round(rng.uniform(_SHORT, _LONG), 1)


VOCABULARY: Mapping[str, _Draw] = MappingProxyType(
    {
        "request": _request,
        "stream": _stream,
        "actuator": _actuator,
        "permission": _permission,
        "kill": lambda rng: FaultStep(kill=rng.choice(list(KillableServer))),
        "refuse": lambda _rng: FaultStep(refuse=True),
    }
)
"""The kinds of steps in a random script, by name."""


def random_script(
    seed: int,
    duration: float,
    words: Sequence[str] = tuple(VOCABULARY),
    *,
    pause: float = 4.0,
) -> list[FaultStep]:
    """Generate faults within `duration` seconds; one begins every `pause` seconds on average.

    The same arguments give the same script. Each fault lasts some seconds and ends before the
    script does.
    """
    rng = random.Random(seed)
    steps: list[FaultStep] = []
    at = 0.0
    while (at := round(at + rng.uniform(0.5, 1.5) * pause, 1)) < duration:
        step = VOCABULARY[rng.choice(words)](rng)
        lasts = round(min(_seconds(rng) + 1, duration - at), 1)
        if lasts > 0:
            steps.append(attrs.evolve(step, at=at, lasts=lasts, name=f"step-{len(steps) + 1}"))
    return steps
