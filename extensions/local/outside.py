"""The outside world of the local sample: a folder with a file per resource, instead of a cloud.

It behaves like a cloud: all shoots and all seeds share it, a resource exists completely and with
its tags or not at all, and a request can be refused or remain without response. Kubernetes does not
belong here.

The owner of the folder controls access: a file `policy.json` with `{"deny": ["delete"]}` denies
deletions; without that file everything is allowed.
"""

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import attrs

from actuator import ActuatorError, DecodeError, ErrorCode, Raw, decode_json, encode

POLICY = "policy.json"
VARIABLE = "LOCAL_OUTSIDE"
"""The environment variable that names the folder."""
_SUFFIX = ".thing"
_ID = re.compile(r"[a-z0-9][a-z0-9.-]{0,248}")

Request = Literal["create", "read", "delete"]

_MEANINGS: Mapping[int, ErrorCode] = {
    errno.EACCES: ErrorCode.ERR_INFRA_UNAUTHORIZED,
    errno.EPERM: ErrorCode.ERR_INFRA_UNAUTHORIZED,
    errno.EROFS: ErrorCode.ERR_INFRA_UNAUTHORIZED,
    errno.ENOENT: ErrorCode.ERR_INFRA_DEPENDENCIES,
    errno.ENOTDIR: ErrorCode.ERR_INFRA_DEPENDENCIES,
    errno.EDQUOT: ErrorCode.ERR_INFRA_QUOTA_EXCEEDED,
    errno.ENOSPC: ErrorCode.ERR_INFRA_RESOURCES_DEPLETED,
}


class OutsideError(ActuatorError):
    """The outside did not execute a request."""

    def __init__(self, request: Request, what: str, why: str, code: ErrorCode) -> None:
        super().__init__(f"The outside refused to {request} {what}: {why}", codes=[code])


@attrs.frozen(kw_only=True)
class Policy:
    """The policy of the folder's owner: everything except `deny` is allowed."""

    deny: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class OutsideResource:
    """A resource outside. `tags` identify its owner; `id` is its name and that of its file."""

    type: str
    id: str
    tags: dict[str, str]
    properties: Raw = attrs.field(factory=dict)


@attrs.frozen
class Outside:
    """All resources in one folder. Each method is one request, and raises OutsideError."""

    directory: Path

    def ensure(self, thing: OutsideResource) -> None:
        """Create or update the resource; never adopt one with other tags."""
        with self.asked("create", thing.id):
            path = self._path(thing.id)
            written = self._written(thing)
            try:
                os.link(written, path)
            except FileExistsError:
                there = self._read(thing.id)
                if there is not None and there.tags != thing.tags:
                    why = f"it exists and belongs to {_text(there.tags)}; remove it, or choose "
                    code = ErrorCode.ERR_CONFIGURATION_PROBLEM
                    raise OutsideError("create", thing.id, f"{why}another name", code) from None
                written.replace(path)
            finally:
                written.unlink(missing_ok=True)

    def delete(self, id: str, tags: Mapping[str, str]) -> None:
        """Delete the resource; a deleted one, or one with other tags, is success."""
        with self.asked("delete", id):
            there = self._read(id)
            if there is not None and there.tags == tags:
                self._path(id).unlink()

    def find(self, tags: Mapping[str, str]) -> list[OutsideResource]:
        """Return all resources with these tags, sorted by id."""
        with self.asked("read", _text(tags) or "its things"):
            paths = sorted(self.directory.iterdir())
            things = [self._read(path.stem) for path in paths if path.suffix == _SUFFIX]
        return [thing for thing in things if thing and tags.items() <= thing.tags.items()]

    @contextmanager
    def asked(self, request: Request, what: str) -> Iterator[None]:
        """Check the policy like a cloud, and translate the system's errors to codes."""
        try:
            if request in self._policy().deny:
                raise PermissionError(errno.EACCES, "its policy denies it")
            yield
        except OSError as error:
            retryable = ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES
            code = _MEANINGS.get(error.errno or 0, retryable)
            raise OutsideError(request, what, error.strerror or "no answer", code) from error
        except DecodeError as error:
            code = ErrorCode.ERR_INFRA_DEPENDENCIES
            raise OutsideError(request, what, f"a file is damaged: {error}", code) from error
        except ValueError as error:
            code = ErrorCode.ERR_CONFIGURATION_PROBLEM
            raise OutsideError(request, repr(what)[:80], str(error), code) from None

    def _policy(self) -> Policy:
        try:
            return decode_json(Policy, (self.directory / POLICY).read_bytes())
        except FileNotFoundError:
            return Policy()

    def _written(self, thing: OutsideResource) -> Path:
        """Write a file with the complete resource, under a name that no method reads."""
        with tempfile.NamedTemporaryFile(dir=self.directory, prefix=".", delete=False) as file:
            file.write(json.dumps(encode(thing), sort_keys=True).encode())
        return Path(file.name)

    def _read(self, id: str) -> OutsideResource | None:
        try:
            return decode_json(OutsideResource, self._path(id).read_bytes())
        except FileNotFoundError:
            self.directory.stat()  # a missing folder is an error: its resources are not deleted
            return None

    def _path(self, id: str) -> Path:
        """Return the file of a resource, directly in the folder. Raises ValueError otherwise."""
        path = self.directory / f"{id}{_SUFFIX}"
        if not _ID.fullmatch(id) or path.is_symlink():
            raise ValueError(
                "the id in status.state is not a plain file name of at most 249 characters from "
                "a-z, 0-9, '.' and '-'; restore the id that the extension wrote"
            )
        return path


def _text(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(tags.items()))
