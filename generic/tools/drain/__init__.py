"""Draining: before an extension is uninstalled, no object in the seed may wait for it.

An object keeps our finalizer until the extension removes it. Without the extension the object, its
namespace and its CRD stay Terminating forever. So, in this order:

1. `survey`: find all objects in the seed that carry the finalizer of an actuator and are of its
   kind, types and class. Kinds that are not installed have none.
2. `wait` (the default, with the extension running): change nothing; wait until no such object is
   under deletion any more. Objects not under deletion are listed: they would get stuck later.
3. `release` (on request, with the extension scaled to zero): remove only our finalizer, after
   possibly remaining external resources are recorded as Orphans. Nothing is deleted.

Not here: the command (`generic.tools.cli.drain`), which the chart's pre-delete hook runs.
"""

from generic.tools.drain.release import check_no_leader, check_own_leases, release
from generic.tools.drain.survey import OwnedObject, Survey, survey, wait

__all__ = [
    "OwnedObject",
    "Survey",
    "check_no_leader",
    "check_own_leases",
    "release",
    "survey",
    "wait",
]
