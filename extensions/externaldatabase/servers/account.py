"""The account that runs a server: this process's own, or `nobody` in place of root.

PostgreSQL refuses to run as root, and a server that listens has no business to (PostgreSQL
documentation, "The PostgreSQL User Account").
"""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path
from typing import Any

import attrs

_NOBODY = "nobody"


@attrs.frozen(kw_only=True)
class Account:
    """A user and a group; `other` where it is not the one of this process."""

    uid: int
    gid: int
    other: bool

    @classmethod
    def ordinary(cls) -> Account:
        """An account that is not root's. Raises KeyError where there is no `nobody`."""
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
        """The same path; it belongs to this account from now on."""
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
    """Whether everybody may read what is in it."""
    return folder.stat().st_mode & 0o005 == 0o005
