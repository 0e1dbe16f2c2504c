"""Record the real gardenlet on a landscape, and write what the simulated one is compared with.

`make record-gardenlet`. The known differences of the file are kept. `--log FOLDER` also saves the
versions of all objects, from which `--reduce FOLDER` writes the recording again.
"""

import argparse
from pathlib import Path

from generic.testing.landscape.programs import gardener_version
from hack.gardenlet.errors import shown_after
from hack.gardenlet.landscape import RECORDED, play
from hack.gardenlet.protocol import Known, Recording, read, written
from hack.gardenlet.reduction import runs_of
from hack.gardenlet.watching import Log, Version, load

FILE = Path(__file__).parents[2] / "tests" / "api" / "gardenlet" / "recording.json"
_SEED, _GARDEN = "seed.jsonl", "garden.jsonl"


def main() -> None:
    """Write the recording, and name the file."""
    parser = argparse.ArgumentParser(description="Record the real gardenlet on a landscape.")
    parser.add_argument("--log", type=Path, help="folder for the versions of all objects")
    parser.add_argument("--reduce", type=Path, help="folder of a saved log; starts no landscape")
    options = parser.parse_args()
    if options.reduce:
        seed, garden = (load(options.reduce / name) for name in (_SEED, _GARDEN))
    else:
        seed, garden = _played(options.log)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(written(recording_of(seed, garden, _known())))
    print(f"wrote {FILE}")


def _played(folder: Path | None) -> tuple[list[Version], list[Version]]:
    seed, garden = Log(), Log()
    try:
        play(seed, garden, print)
    finally:
        if folder:
            seed.save(folder / _SEED)
            garden.save(folder / _GARDEN)
    return seed.versions(), garden.versions()


def recording_of(seed: list[Version], garden: list[Version], known: tuple[Known, ...]) -> Recording:
    """Reduce the logs of a seed and of its garden."""
    flows = runs_of(seed, RECORDED).protocols()
    return Recording(gardener_version(), flows, shown_after(seed, garden), known)


def _known() -> tuple[Known, ...]:
    return tuple(read(FILE.read_text()).known) if FILE.exists() else ()


if __name__ == "__main__":
    main()
