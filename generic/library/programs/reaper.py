"""The program that ends a process group after the process that started it has ended.

`processes.ProcessGroup` runs this file by itself (standard library only, so that it starts in
milliseconds); it is never imported. The reaper leads the group which the other children join. Its
standard input is a pipe that only its starter writes to: when the starter ends, even by SIGKILL,
the kernel closes the pipe. A fork of the starter may hold a copy of the pipe, so the parent's id is
watched too.
"""

import os
import select
import shutil
import signal
import sys
import time

POLL_SECONDS = 1.0
END_SECONDS = 10.0


def wait_for_end(parent: int) -> None:
    """Return once the pipe is closed or the parent has changed."""
    while os.getppid() == parent:
        if select.select([0], [], [], POLL_SECONDS)[0]:
            return


def end(group: int, directory: str) -> None:
    """Kill the group and remove its directory; return when both are gone, or after END_SECONDS."""
    os.setpgid(0, 0)
    os.killpg(group, signal.SIGKILL)
    deadline = time.monotonic() + END_SECONDS
    while (os.path.lexists(directory) or has_members(group)) and time.monotonic() < deadline:
        shutil.rmtree(directory, ignore_errors=True)
        time.sleep(0.01)


def has_members(group: int) -> bool:
    """Whether the group has a process left, including zombies."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    """Run with the arguments: the starter's process id, the directory to remove."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    parent = int(sys.argv[1])
    directory = sys.argv[2]
    wait_for_end(parent)
    group = os.getpid()
    if os.fork() == 0:  # a leader cannot leave its group, its child can
        end(group, directory)
    else:
        signal.pause()  # until the child kills the group


if __name__ == "__main__":
    main()
