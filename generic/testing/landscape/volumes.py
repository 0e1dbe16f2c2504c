"""The volumes of a pod as folders, and the paths of a container's mounts in them.

Files and folders can be read by the user alone, whatever mode the pod asks for. They follow the
Secrets and ConfigMaps that they come from, tokens are renewed at four fifths of their life, and an
emptyDir keeps its content as long as the pod exists. A path never leads out of its volume.

Not here: the kinds of volumes that are refused (`pods`).
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from actuator.interface import Clock, Resource
from actuator.meta import Raw, parse_time
from generic.kube.client import HttpClient, path_of
from generic.testing.landscape.pods import Data, Missing, PodRefused, Read, field_of, inside

_ACCOUNTS = Resource("v1", "serviceaccounts")
_LIFE = 0.8
"""The share of its life after which a token is renewed."""
_DEFAULT_SECONDS = 3600
Token = Callable[[Raw, str, int], bytes]
"""Returns a token of a pod's service account: by pod, audience ("" for the API) and seconds."""


class _IssuedToken(NamedTuple):
    token: bytes
    renewed_at: float


class Tokens:
    """Tokens of service accounts, bound to their pods: the API server refuses those of others.

    Kubernetes documentation, "TokenRequest".
    """

    def __init__(self, client: HttpClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._issued: dict[tuple[str, str, int], _IssuedToken] = {}

    def get(self, pod: Raw, audience: str, seconds: int) -> bytes:
        """Return a valid token. Raises ApiError."""
        key = pod["metadata"]["uid"], audience, seconds
        issued = self._issued.get(key)
        if issued is None or self._clock.monotonic() >= issued.renewed_at:
            issued = self._issued[key] = self._request(pod, audience, seconds)
        return issued.token

    def forget(self, uid: str) -> None:
        """Forget the tokens of a pod."""
        for key in [key for key in list(self._issued) if key[0] == uid]:
            self._issued.pop(key, None)

    def _request(self, pod: Raw, audience: str, seconds: int) -> _IssuedToken:
        meta = pod["metadata"]
        account = pod["spec"].get("serviceAccountName") or "default"
        pod_reference = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"]}
        spec = {
            "expirationSeconds": seconds,
            "audiences": [audience] if audience else [],
            "boundObjectRef": {**pod_reference, "uid": meta["uid"]},
        }
        path = path_of(_ACCOUNTS, meta["namespace"], account, "token")
        answer = json.loads(
            self._client.send("POST", path, body=json.dumps({"spec": spec}).encode())
        )
        status = answer["status"]
        left = (parse_time(status["expirationTimestamp"]) - self._clock.now()).total_seconds()
        return _IssuedToken(status["token"].encode(), self._clock.monotonic() + _LIFE * left)


class Volumes:
    """The volumes of one pod, as folders below `folder`, which must be private."""

    def __init__(self, pod: Raw, folder: Path, read: Read, token: Token) -> None:
        self._pod = pod
        self._folder = folder
        self._read = read
        self._token = token

    def refresh(self) -> None:
        """Write new and changed files, and remove those that no longer exist.

        Raises Missing, Refused, and ApiError. A missing source does not keep other volumes old.
        """
        missing: Missing | None = None
        for volume in self._pod["spec"].get("volumes") or ():
            folder = self._folder / volume["name"]
            make_folders(self._folder.parent, folder)
            if "emptyDir" in volume or len(volume) == 1:
                continue
            try:
                write_files(folder, dict(self._files(volume)))
            except Missing as error:
                missing = missing or error
        if missing is not None:
            raise missing

    def paths(self, container: Raw) -> dict[str, Path]:
        """Return the mounts of a container: paths inside it, and the local paths in their place.

        Raises Refused if a mount leaves its volume, also through a symbolic link.
        """
        found = {}
        for mount in container.get("volumeMounts") or ():
            volume = (self._folder / mount["name"]).resolve()
            path = volume / inside(mount.get("subPath") or ".", "subPath")
            if not path.resolve().is_relative_to(volume):
                raise PodRefused(f"subPath {mount['subPath']!r} leaves its volume.")
            if not path.exists():
                make_folders(volume, path)
            found[str(PurePosixPath(mount["mountPath"]))] = path
        return found

    def _files(self, volume: Raw) -> Iterator[tuple[str, bytes]]:
        for source in (volume, *(volume.get("projected") or {}).get("sources", ())):
            if secret := source.get("secret"):
                name = secret.get("secretName") or secret.get("name")
                yield from self._items("secrets", "Secret", str(name), secret)
            elif config := source.get("configMap"):
                yield from self._items("configmaps", "ConfigMap", str(config["name"]), config)
            elif asked := source.get("serviceAccountToken"):
                seconds = int(asked.get("expirationSeconds") or _DEFAULT_SECONDS)
                yield asked["path"], self._token(self._pod, asked.get("audience") or "", seconds)
            elif downward := source.get("downwardAPI"):
                for item in downward.get("items") or ():
                    reference = item.get("fieldRef") or {"fieldPath": "resourceFieldRef"}
                    yield item["path"], field_of(self._pod, reference["fieldPath"]).encode()

    def _items(self, plural: str, kind: str, name: str, source: Raw) -> Iterator[tuple[str, bytes]]:
        data = self._read(plural, self._pod["metadata"]["namespace"], name)
        optional = bool(source.get("optional"))
        if data is None and not optional:
            raise Missing(f"{kind} {name!r} does not exist.")
        if not source.get("items"):
            yield from (data or {}).items()
        for item in source.get("items") or ():
            if item["key"] in (data or {}):
                yield item["path"], (data or {})[item["key"]]
            elif not optional:
                raise Missing(f"{kind} {name!r} has no key {item['key']!r}.")


def write_files(folder: Path, files: Data) -> None:
    """Make the content of the folder equal to `files`, by relative path. Raises Refused.

    Each file changes as a whole. A symbolic link in the folder is removed, never followed.
    """
    wanted = {folder / inside(path, "path"): content for path, content in files.items()}
    if folder in wanted:
        raise PodRefused("path '.' is the volume itself.")
    for path, content in wanted.items():
        make_folders(folder, path.parent)
        write_private(path, content)
    for path in sorted(folder.rglob("*"), reverse=True):  # what is in a folder before the folder
        if path.is_symlink() or not path.is_dir():
            if path not in wanted:
                path.unlink()
        else:
            with suppress(OSError):  # it is not empty
                path.rmdir()


def write_private(path: Path, content: bytes) -> None:
    """Replace a file as a whole, if its content differs; only the user can read it."""
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def make_folders(folder: Path, wanted: Path) -> None:
    """Make a private folder below `folder`; it replaces files and symbolic links on the way."""
    path = folder
    for part in wanted.relative_to(folder).parts:
        path /= part
        if path.is_symlink() or path.is_file():
            path.unlink()
        path.mkdir(mode=0o700, exist_ok=True)


def rewriter(paths: Mapping[str, Path]) -> Callable[[str], str]:
    """Return a function that replaces complete paths inside a container by local ones."""
    if not paths:
        return lambda text: text
    longest_first = sorted(map(re.escape, paths), key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w./~-])({'|'.join(longest_first)})(?=[/\s\"',:;]|$)")
    return lambda text: pattern.sub(lambda found: str(paths[found[1]]), text)
