"""Draining: before an extension is uninstalled, nothing of the seed may wait for it any more.

An object keeps our finalizer until the extension takes it off. Once the extension is gone nobody
does, and the object, its namespace and its CRD stay Terminating for ever. So, in this order:

1. `survey`: what in the whole seed carries the finalizer of an actuator and is of its kind,
   types and class. What is not installed there holds nothing.
2. `wait` (the default, with the extension running): changes nothing; waits until no such object
   is being deleted any more. What is alive then is listed: it would get stuck later.
3. `release` (on request, with the extension scaled to zero): takes our finalizer off, and no
   other, after what may be left outside is on record as Orphans. What is alive stays alive.

The command around it is `generic.tools.cli.drain`; the chart's pre-delete hook runs that.
"""

from generic.tools.drain.release import Release, check_nobody_leads, release
from generic.tools.drain.survey import Held, Survey, survey, wait

__all__ = ["Held", "Release", "Survey", "check_nobody_leads", "release", "survey", "wait"]
