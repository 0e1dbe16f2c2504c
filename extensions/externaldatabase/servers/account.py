"""The account that runs a server: this process's own, or `nobody` in place of root.

PostgreSQL refuses to run as root, and no server that listens should (PostgreSQL documentation, "The
PostgreSQL User Account").
"""

import os
import pwd
import shutil
from pathlib import Path
from typing import Any

import attrs

_NOBODY = "nobody"


@attrs.frozen(kw_only=True)
class Account:
    """A user and a group; `other` if they differ from those of this process."""

    uid: int
    gid: int
    other: bool

    @classmethod
    def ordinary(cls) -> "Account":
        """Return an account other than root. Raises KeyError if there is no `nobody`."""
        if os.geteuid() != 0:
            return cls(uid=os.geteuid(), gid=os.getegid(), other=False)
        nobody = pwd.getpwnam(_NOBODY)
        return cls(uid=nobody.pw_uid, gid=nobody.pw_gid, other=True)

    @property
    def identity(self) -> dict[str, Any]:
        """Arguments with which `subprocess` runs a command under this account."""
        if not self.other:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> Path:
        """Make this account the owner of the path; return the path."""
        if self.other:
            os.chown(path, self.uid, self.gid)
        return path

    def reachable(self, folder: Path, near: Path) -> Path:
        """Return `folder`, or `near`, a new copy of it, if the account cannot read `folder`.

        A cache below root's home is closed to other accounts.
        """
        if not self.other or all(_is_open(place) for place in (folder, *folder.parents)):
            return folder
        return shutil.copytree(folder, near, symlinks=True)


def _is_open(folder: Path) -> bool:
    """Whether all users may read the contents."""
    return folder.stat().st_mode & 0o005 == 0o005
