"""Record the real gardenlet: `make record-gardenlet`."""

import sys
from pathlib import Path

from hack.gardenlet.landscape import play
from hack.gardenlet.watching import Log


def main() -> None:
    folder = Path(sys.argv[1])
    seed, garden = Log(), Log()
    try:
        play(seed, garden, print)
    finally:
        seed.save(folder / "seed.jsonl")
        garden.save(folder / "garden.jsonl")


if __name__ == "__main__":
    main()
