"""Record the real gardenlet on a landscape, and write what the simulated one is compared with.

`make record-gardenlet`. The known differences of the file are kept. `--log FOLDER` also saves the
versions of all objects, from which `--reduce FOLDER` writes the recording again.
"""

import argparse
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from generic.testing.landscape.programs import gardener_version
from hack.gardenlet.errors import shown_after
from hack.gardenlet.landscape import Logs, play
from hack.gardenlet.player import RECORDED
from hack.gardenlet.protocol import Known, Recording, read, written
from hack.gardenlet.reduction import flows_of, retried_in
from hack.gardenlet.waits import waits
from hack.gardenlet.watching import ObjectVersion, load

FILE = Path(__file__).parents[2] / "tests" / "api" / "gardenlet" / "recording.json"
_GARDEN = "garden.jsonl"


def main() -> None:
    """Write the recording, and name the file."""
    parser = argparse.ArgumentParser(description="Record the real gardenlet on a landscape.")
    parser.add_argument("--log", type=Path, help="folder for the versions of all objects")
    parser.add_argument("--reduce", type=Path, help="folder of a saved log; starts no landscape")
    options = parser.parse_args()
    if options.reduce:
        seeds = [load(path) for path in sorted(options.reduce.glob("seed-*.jsonl"))]
        garden = load(options.reduce / _GARDEN)
    else:
        seeds, garden = _played(options.log)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(written(recording_of(seeds, garden, _known())))
    print(f"wrote {FILE}")


def _played(folder: Path | None) -> tuple[list[list[ObjectVersion]], list[ObjectVersion]]:
    logs = Logs()
    try:
        play(logs, print)
    finally:
        if folder:
            folder.mkdir(exist_ok=True)
            logs.garden.save(folder / _GARDEN)
            for number, log in enumerate(logs.seeds, 1):
                log.save(folder / f"seed-{number}.jsonl")
    return [log.versions() for log in logs.seeds], logs.garden.versions()


def recording_of(
    seeds: Sequence[list[ObjectVersion]], garden: list[ObjectVersion], known: tuple[Known, ...]
) -> Recording:
    """Reduce the logs of the seeds and of their garden."""
    flows = flows_of(seeds, RECORDED, retried_in(garden))
    shown = shown_after(chain(*seeds), garden)
    return Recording(gardener_version(), flows, shown, waits(), known)


def _known() -> tuple[Known, ...]:
    return tuple(read(FILE.read_text()).known) if FILE.exists() else ()


if __name__ == "__main__":
    main()
