"""Memory: what a landscape needs, and what its processes use. Linux only."""

from contextlib import suppress
from pathlib import Path

from generic.library.programs.errors import EnvtestError

GARDEN_GIB = 1.2
SEED_GIB = 2.4
SHOOT_GIB = 0.9
"""Measured, shared pages divided among the processes."""
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
    """Return the bytes of memory of a process and all its descendants (kernel, "Pss")."""
    return sum(map(_proportional, [pid, *descendants(pid)]))


def descendants(pid: int) -> set[int]:
    """Return the processes below a process."""
    found: set[int] = set()
    for thread in (_PROC / str(pid) / "task").glob("*/children"):
        with suppress(OSError):  # it has ended
            direct = {int(child) for child in thread.read_text().split()}
            found = found.union(direct, *map(descendants, direct))
    return found


def _proportional(pid: int) -> int:
    with suppress(OSError):  # it has ended, or belongs to another user
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


def gib(size: int) -> str:
    """Return bytes in GiB, with one decimal."""
    return f"{size / (1 << 30):.1f}"
