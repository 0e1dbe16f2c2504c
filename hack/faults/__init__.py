"""Fault injection: on the way to the API server, in its servers, in permissions, in actuators.

For the tests of this project. A fault is data, and so is a scenario of many (play.py); every fault
is undone at its end.
"""

from generic.testing.envtest.servers import KillableServer
from hack.faults.actuators import ActuatorEffect, ActuatorFault, FaultyActuator
from hack.faults.permission import Revocation, Revoked
from hack.faults.play import FaultStage, FaultStep, play
from hack.faults.proxy import FaultProxy
from hack.faults.requests import Effect, Fault, FaultyCall
from hack.faults.rules import Injection

__all__ = [
    "ActuatorEffect",
    "ActuatorFault",
    "Effect",
    "Fault",
    "FaultProxy",
    "FaultStage",
    "FaultStep",
    "FaultyActuator",
    "FaultyCall",
    "Injection",
    "KillableServer",
    "Revocation",
    "Revoked",
    "play",
]
