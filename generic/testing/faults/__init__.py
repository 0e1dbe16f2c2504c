"""Fault injection: on the way to the API server, in its servers, in permissions, in actuators.

For drills, tests, and authors who test an extension under failures. A fault is data, and so is a
scenario of many (play.py); every fault is undone at its end.
"""

from generic.testing.envtest.servers import Server
from generic.testing.faults.actuators import ActuatorFault, FaultyActuator, Mischief
from generic.testing.faults.permission import Revocation, Revoked
from generic.testing.faults.play import Stage, Step, play
from generic.testing.faults.proxy import FaultProxy
from generic.testing.faults.requests import Call, Effect, Fault
from generic.testing.faults.rules import Injection

__all__ = [
    "ActuatorFault",
    "Call",
    "Effect",
    "Fault",
    "FaultProxy",
    "FaultyActuator",
    "Injection",
    "Mischief",
    "Revocation",
    "Revoked",
    "Server",
    "Stage",
    "Step",
    "play",
]
