"""Names the extra that installs a missing package, from the metadata of our distribution."""

import re
from collections import defaultdict
from importlib import metadata

_OURS = "gardener-actuator"
_OPTIONAL = re.compile(r"""([\w.-]+).*extra == ['"]([\w-]+)['"]""")


def installation(module: str | None) -> str:
    """Return the command that installs the module with the smallest extra; "" if none has it."""
    extras: dict[str, set[str]] = defaultdict(set)
    for ours in metadata.distributions(name=_OURS):
        for found in filter(None, map(_OPTIONAL.match, ours.requires or ())):
            extras[found[2]].add(found[1].lower())
    package = (module or "").partition(".")[0].lower()
    able = [name for name, packages in extras.items() if package in packages]
    return f"pip install '{_OURS}[{min(able, key=lambda n: len(extras[n]))}]'" if able else ""
