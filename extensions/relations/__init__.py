"""The relations sample: three ways to tie an object to its dependent resources.

    actuator dev extensions.relations:extension
    actuator drill extensions.relations.rehearsal:RelationsRehearsal

Read `kinds`, then `owned`, `watched` and `external`, one actuator each; `register` is the outside,
and `rehearsal` is for drills.
"""

import os
from pathlib import Path

import generic
from extensions.relations.external import Entries
from extensions.relations.owned import Teams
from extensions.relations.register import Register
from extensions.relations.watched import Mirrors


def extension(manager: generic.Manager) -> None:
    """Add the sample's actuators, for objects of type "relations", to a manager.

    The register is the file that the environment variable RELATIONS_REGISTER names, by default
    `relations-register.sqlite` in the user's home. Raises sqlite3.Error.
    """
    named = os.environ.get("RELATIONS_REGISTER")
    register = Register(Path(named or Path.home() / "relations-register.sqlite"))
    register.open()
    for actuator in (Teams(), Mirrors(), Entries(register)):
        manager.add(actuator, type="relations")
