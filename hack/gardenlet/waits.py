"""How long gardenlet waits for objects of extensions: the constants of its program."""

import json
import subprocess

from generic.testing.landscape.programs import find_gardener
from hack.gardenlet.protocol import Waits


def waits() -> Waits:
    """Return them. Raises EnvtestError if the program cannot be built."""
    ended = subprocess.run([find_gardener(print), "waits"], check=True, stdout=subprocess.PIPE)
    found: Waits = json.loads(ended.stdout)
    return found
