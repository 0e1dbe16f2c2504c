"""Faults to order: on the way to the API server, in its servers, in permissions, in actuators.

For drills, tests, and anyone who wants to see what an extension does when things go wrong. A
fault is data, and so is a scenario of many (script.py); all are undone when they are over.
"""

from generic.faults.actuators import ActuatorFault, FaultyActuator, Mischief
from generic.faults.permission import Revocation, Revoked
from generic.faults.play import Stage, play
from generic.faults.proxy import FaultProxy
from generic.faults.requests import Call, Effect, Fault
from generic.faults.rules import Injection
from generic.faults.script import Script, Step, random_script
from generic.faults.servers import Server, kill, restart

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
    "Script",
    "Server",
    "Stage",
    "Step",
    "kill",
    "play",
    "random_script",
    "restart",
]
