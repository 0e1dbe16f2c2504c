"""The program that becomes another one under another account: `drop.py UID GID COMMAND…`.

`account.Account` runs this file by itself (standard library only); nobody imports it.
"""

import os
import sys


def main() -> None:
    """Gives up root, its groups included, and then runs the command in its own place."""
    uid, gid, *command = sys.argv[1:]
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))
    os.execv(command[0], command)  # noqa: S606 - a list, as everywhere


if __name__ == "__main__":
    main()
