"""Scripts: what goes wrong when, as data that can be printed, read back, and drawn at random.

Not here: how a script is played (play.py).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import attrs

from actuator.codec import decode_strictly, encode
from actuator.errors import ConfigurationError, DecodeError, ErrorCode
from generic.testing.envtest.servers import Server
from generic.testing.faults.actuators import OPERATIONS, ActuatorFault, Mischief
from generic.testing.faults.permission import Revoked
from generic.testing.faults.requests import Effect, Fault


@attrs.frozen(kw_only=True)
class Step:
    """One thing that begins to go wrong, or (`ends`) what an earlier step began and is over.

    It is due `at` seconds after the script's start, and when the condition of the name `when`
    holds. What it begins lasts so many seconds, or (0) until a step ends it by its `name`, or
    the script is over. What cannot happen twice at once (`kill` of one server, `refuse`) is over
    when the first of two steps that overlap is. Raises ValueError for a step that does nothing,
    or two things.
    """

    at: float = 0.0
    when: str = ""
    name: str = ""
    lasts: float = 0.0
    fault: Fault | None = None
    """Goes wrong on the way to the API server."""
    actuator: ActuatorFault | None = None
    """Goes wrong in the actuator."""
    revoke: Revoked | None = None
    """Is taken from the manager's role."""
    kill: Server | None = attrs.field(default=None, converter=attrs.converters.optional(Server))
    """Is killed; started again at the end."""
    refuse: bool = False
    """Connections to the API server are refused."""
    ends: str = ""

    def __attrs_post_init__(self) -> None:
        """One step does one thing."""
        things = [self.fault, self.actuator, self.revoke, self.kill, self.refuse, self.ends]
        if sum(1 for thing in things if thing) != 1:
            raise ValueError(
                f"the step at {self.at:g} s has to have exactly one of fault, actuator, revoke, "
                "kill, refuse, ends"
            )


@attrs.frozen(kw_only=True)
class Script:
    """Steps, in any order; `seed` is where a random script came from, -1 for others.

    `patience`: seconds that a step waits for its condition. Raises ValueError for a step that
    ends what no step begins, and for two of the same name.
    """

    steps: list[Step] = attrs.field(factory=list)
    seed: int = -1
    patience: float = 60.0

    def __attrs_post_init__(self) -> None:
        """Names hold together."""
        names = [step.name for step in self.steps if step.name]
        for step in self.steps:
            if step.ends and step.ends not in names:
                raise ValueError(f"a step ends {step.ends!r}, but no step has that name")
            if step.name and names.count(step.name) > 1:
                raise ValueError(f"two steps have the name {step.name!r}")

    def to_json(self) -> str:
        """The script as text, one that people can read."""
        return json.dumps(encode(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Script:
        """The script that `to_json` wrote. Raises ConfigurationError naming what is wrong."""
        try:
            return decode_strictly(cls, json.loads(text))
        except (ValueError, DecodeError) as error:
            raise ConfigurationError(f"the script cannot be read: {error}") from error

    @classmethod
    def read(cls, path: Path) -> Script:
        """The script in a file. Raises ConfigurationError naming file and problem."""
        try:
            return cls.from_json(path.read_text())
        except (OSError, ConfigurationError) as error:
            raise ConfigurationError(f"{path}: {error}") from error


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
    allowed = [m for m in Mischief if m is not Mischief.NEVER_RETURN]
    fault = ActuatorFault(
        mischief=dice.choice(allowed),
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


def _kill(dice: random.Random) -> Step:
    return Step(kill=dice.choice(list(Server)))


def _refuse(_dice: random.Random) -> Step:
    return Step(refuse=True)


def _seconds(dice: random.Random) -> float:
    return round(dice.uniform(_SHORT, _LONG), 1)


VOCABULARY: Mapping[str, _Draw] = MappingProxyType(
    {
        "request": _request,
        "stream": _stream,
        "actuator": _actuator,
        "permission": _permission,
        "kill": _kill,
        "refuse": _refuse,
    }
)
"""What a random script is made of."""


def random_script(
    seed: int,
    duration: float,
    words: Sequence[str] = tuple(VOCABULARY),
    *,
    pause: float = 4.0,
) -> Script:
    """Things that go wrong within `duration` seconds, one begins every `pause` on average.

    The same arguments give the same script. Each thing lasts some seconds and is over at the
    end. No call into an actuator is drawn that never returns: its thread would be lost for good.
    """
    dice = random.Random(seed)
    steps: list[Step] = []
    at = 0.0
    while (at := round(at + dice.uniform(0.5, 1.5) * pause, 1)) < duration:
        step = VOCABULARY[dice.choice(words)](dice)
        lasts = round(min(_seconds(dice) + 1, duration - at), 1)
        if lasts > 0:
            steps.append(attrs.evolve(step, at=at, lasts=lasts, name=f"step-{len(steps) + 1}"))
    return Script(steps=steps, seed=seed)
