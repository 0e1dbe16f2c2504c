"""Memory: what a landscape needs, and what its processes use. Linux only."""

from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from generic.library.programs.errors import EnvtestError

GARDEN_GIB, SEED_GIB, SHOOT_GIB = 1.1, 2.0, 0.6
"""Measured."""
_PROC = Path("/proc")


def require_memory(seeds: int, shoots: int = 1) -> None:
    """Raise EnvtestError if the machine has too little free memory for a landscape."""
    needed = GARDEN_GIB + seeds * SEED_GIB + shoots * SHOOT_GIB
    free = available()
    if free is not None and free < needed:
        raise EnvtestError(
            f"the landscape needs {needed:.1f} GiB of free memory, this machine has {free:.1f}; "
            "stop other programs, or use a larger machine"
        )


def available() -> float | None:
    """Return the memory in GiB that new programs can use; None if the kernel does not tell."""
    with suppress(OSError):
        for line in (_PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / (1 << 20)
    return None


def resident(pid: int) -> int:
    """Return the bytes of memory of a process and all its descendants; shared pages count twice."""
    children = defaultdict(list)
    sizes = {}
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            fields = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines()
            )
            children[int(fields["PPid"])].append(int(folder.name))
            sizes[int(folder.name)] = int(fields.get("VmRSS", "0 kB").split()[0]) << 10
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        total += sizes.get(one, 0)
        waiting += children[one]
    return total


def gib(size: int) -> str:
    """Return bytes in GiB, with one decimal."""
    return f"{size / (1 << 30):.1f}"
