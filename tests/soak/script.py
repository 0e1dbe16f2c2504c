"""Random scripts of faults, and scripts as JSON."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs

from actuator.codec import decode_strictly, encode
from actuator.errors import ConfigurationError, DecodeError, ErrorCode
from generic.testing.faults import ActuatorFault, Effect, Fault, Mischief, Revoked, Server, Step
from generic.testing.faults.actuators import OPERATIONS


def to_json(script: Sequence[Step]) -> str:
    """Return the script as indented JSON."""
    return json.dumps([encode(step) for step in script], indent=2) + "\n"


def from_json(text: str) -> list[Step]:
    """Read the output of `to_json`. Raises ConfigurationError that names the problem."""
    try:
        return [decode_strictly(Step, step) for step in json.loads(text)]
    except (ValueError, DecodeError) as error:
        raise ConfigurationError(f"the script cannot be read: {error}") from error


_Draw = Callable[[random.Random], Step]
_SHORT, _LONG = 0.2, 5.0
_WRITES = ["patch", "create", "delete"]
_TIMED = (Effect.DELAY, Effect.STALL, Effect.DELAY_LINE, Effect.SILENCE)
_STATUSES = (403, 409, 410, 429, 500, 503, 504)


def _seed(dice: random.Random) -> int:
    return dice.randrange(2**31)


def _request(dice: random.Random) -> Step:
    effect = dice.choice([e for e in Effect if not e.is_of_lines])
    answers = effect is Effect.ANSWER
    fault = Fault(
        effect=effect,
        verbs=dice.choice([[], _WRITES, ["patch"], ["get", "list", "watch"]]),
        probability=dice.choice([0.1, 0.3, 1.0]),
        seed=_seed(dice),
        seconds=_seconds(dice) if effect in _TIMED else 0.0,
        status=dice.choice(_STATUSES) if answers else 500,
        retry_after=dice.choice([0, 1]) if answers else 0,
    )
    return Step(fault=fault)


def _stream(dice: random.Random) -> Step:
    effect = dice.choice([e for e in Effect if e.is_of_lines])
    fault = Fault(
        effect=effect,
        times=dice.randint(1, 5),
        seconds=_seconds(dice) if effect in _TIMED else 0.0,
        status=dice.choice([410, 500]) if effect is Effect.STREAM_ERROR else 500,
    )
    return Step(fault=fault)


def _actuator(dice: random.Random) -> Step:
    fault = ActuatorFault(
        mischief=dice.choice(list(Mischief)),
        operations=dice.choice([[], *([operation] for operation in OPERATIONS)]),
        probability=dice.choice([0.1, 0.5, 1.0]),
        seed=_seed(dice),
        seconds=_seconds(dice),
        codes=dice.choice([[], [ErrorCode.ERR_INFRA_UNAUTHENTICATED]]),
    )
    return Step(actuator=fault)


def _permission(dice: random.Random) -> Step:
    resource = dice.choice(["*", "*/status", "events", "leases", "clusters"])
    return Step(revoke=Revoked(resource=resource, verbs=dice.choice([[], ["patch"], ["watch"]])))


def _seconds(dice: random.Random) -> float:
    return round(dice.uniform(_SHORT, _LONG), 1)


VOCABULARY: Mapping[str, _Draw] = MappingProxyType(
    {
        "request": _request,
        "stream": _stream,
        "actuator": _actuator,
        "permission": _permission,
        "kill": lambda dice: Step(kill=dice.choice(list(Server))),
        "refuse": lambda _dice: Step(refuse=True),
    }
)
"""The kinds of steps in a random script, by name."""


def random_script(
    seed: int,
    duration: float,
    words: Sequence[str] = tuple(VOCABULARY),
    *,
    pause: float = 4.0,
) -> list[Step]:
    """Generate faults within `duration` seconds; one begins every `pause` seconds on average.

    The same arguments give the same script. Each fault lasts some seconds and ends before the
    script does.
    """
    dice = random.Random(seed)
    steps: list[Step] = []
    at = 0.0
    while (at := round(at + dice.uniform(0.5, 1.5) * pause, 1)) < duration:
        step = VOCABULARY[dice.choice(words)](dice)
        lasts = round(min(_seconds(dice) + 1, duration - at), 1)
        if lasts > 0:
            steps.append(attrs.evolve(step, at=at, lasts=lasts, name=f"step-{len(steps) + 1}"))
    return steps
