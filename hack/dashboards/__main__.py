"""Writes the dashboards into the package: `make dashboards`. A test fails when they are stale."""

from __future__ import annotations

import json
from pathlib import Path

from hack.dashboards.controllers import CONTROLLERS
from hack.dashboards.deletions import DELETIONS

FOLDER = Path(__file__).parents[2] / "generic" / "tools" / "monitoring" / "dashboards"


def written() -> dict[str, str]:
    """File names, and what has to be in them."""
    return {
        f"{dashboard.uid.removeprefix('actuator-')}.json": json.dumps(dashboard.json(), indent=1)
        + "\n"
        for dashboard in (DELETIONS, CONTROLLERS)
    }


if __name__ == "__main__":
    for name, text in written().items():
        (FOLDER / name).write_text(text)
