"""Scripts: a schedule of faults, as data. Not here: playing a script (`play`)."""

import attrs

from generic.testing.envtest.servers import Server
from generic.testing.faults.actuators import ActuatorFault
from generic.testing.faults.permission import Revoked
from generic.testing.faults.requests import Fault


@attrs.frozen(kw_only=True)
class Step:
    """One fault, due `at` seconds after the script's start, once the condition `when` holds.

    It lasts `lasts` seconds, or (0) until the end of the script; `name` is for messages. A fault
    that cannot occur twice at once (`kill` of one server, `refuse`) ends with the first of two
    overlapping steps. Raises ValueError for a step without a fault or with several.
    """

    at: float = 0.0
    when: str = ""
    name: str = ""
    lasts: float = 0.0
    fault: Fault | None = None
    """Fault on the way to the API server."""
    actuator: ActuatorFault | None = None
    """Fault in the actuator."""
    revoke: Revoked | None = None
    """Permissions removed from the manager's role."""
    kill: Server | None = attrs.field(default=None, converter=attrs.converters.optional(Server))
    """Server that is killed, and started again at the end."""
    refuse: bool = False
    """Refuse connections to the API server."""

    def __attrs_post_init__(self) -> None:
        """Check that the step has exactly one fault. Raises ValueError."""
        things = [self.fault, self.actuator, self.revoke, self.kill, self.refuse]
        if sum(1 for thing in things if thing) != 1:
            raise ValueError(
                f"the step at {self.at:g} s has to have exactly one of fault, actuator, revoke, "
                "kill, refuse"
            )


@attrs.frozen(kw_only=True)
class Script:
    """Steps, in any order; `seed` is the seed of a random script, -1 for others.

    `patience`: seconds that a step waits for its condition.
    """

    steps: list[Step] = attrs.field(factory=list)
    seed: int = -1
    patience: float = 60.0
