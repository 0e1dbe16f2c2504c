"""A builder for the machines that have none: runs the instructions of a Dockerfile in a folder.

The folder stands for the root of the file system: absolute paths of the instructions begin there.
Base images are this machine's Python and Go. It refuses instructions that it cannot execute.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs

_ROOTED = re.compile(r"(?<![\w./$}])/(?=(?:opt|src|usr/local)\b)")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


class BuildError(Exception):
    """An instruction failed."""


@attrs.define
class Image:
    """The result of a stage."""

    files: Path
    env: dict[str, str]
    directory: str = "/"
    user: str = ""
    entrypoint: list[str] = attrs.field(factory=list)
    command: list[str] = attrs.field(factory=list)


class Builder:
    """Builds the last stage, and the stages that it needs."""

    def __init__(self, context: Path, work: Path, bases: Mapping[str, Image]) -> None:
        self._context = context
        self._work = work
        self._bases = bases  # by the name of the stage that is the base image
        self._built: dict[str, Image] = {}
        work.mkdir()
        self.root = work / "root"
        self.args: dict[str, str] = {}
        self.stages: dict[str, list[list[str]]] = {}
        self._parse((context / "Dockerfile").read_text())

    def build(self, **args: str) -> Image:
        """The last stage with these arguments. Its files are below `root`."""
        self.args |= args
        image = self._stage(list(self.stages)[-1])
        image.files.rename(self.root)
        image.files = self.root
        return image

    def _parse(self, text: str) -> None:
        steps: list[list[str]] | None = None
        for line in text.replace("\\\n", " ").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            name, _, rest = line.partition(" ")
            if name == "FROM":
                source, _, stage = rest.partition(" AS ")
                steps = self.stages[stage or "(last)"] = [["FROM", source]]
            elif steps is not None:
                steps.append([name, rest])
            elif name == "ARG":
                argument, _, value = rest.partition("=")
                self.args[argument] = value
            else:
                raise BuildError(f"{line}: before the first FROM")

    def _stage(self, name: str) -> Image:
        if name in self._bases:
            return self._bases[name]
        if name in self._built:
            return self._built[name]
        (_, source), *steps = self.stages[name]
        image = self._from(source)
        for instruction, rest in steps:
            others = [self._stage(other) for other in re.findall(r"--from=(\w+)", rest)]
            # In its turn each stage is the root: a virtual environment must not move.
            image.files.rename(self.root)
            getattr(self, f"_{instruction.lower()}")(image, rest, *others)
            self.root.rename(image.files)
        self._built[name] = image
        return image

    def _from(self, source: str) -> Image:
        base = self._stage(_VARIABLE.sub(lambda found: self.args[found[1] or found[2]], source))
        files = self._work / f"stage-{len(list(self._work.iterdir()))}"
        shutil.copytree(base.files, files, symlinks=True, copy_function=os.link)
        return attrs.evolve(base, files=files, env=dict(base.env))

    def _inside(self, text: str) -> str:
        return _ROOTED.sub(f"{self.root}/", text)

    def _workdir(self, image: Image, rest: str) -> None:
        image.directory = rest
        Path(self._inside(rest)).mkdir(parents=True, exist_ok=True)

    def _arg(self, image: Image, rest: str) -> None:
        name, _, value = rest.partition("=")
        image.env[name] = self.args.get(name, value)

    def _env(self, image: Image, rest: str) -> None:
        before = dict(image.env)
        for pair in rest.split():
            name, _, value = pair.partition("=")
            value = _VARIABLE.sub(lambda found: before[found[1] or found[2]], value)
            image.env[name] = self._inside(value)

    def _run(self, image: Image, rest: str) -> None:
        """With this machine's settings for fetching packages, and with its cache of them."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env = {**own, **image.env}
        env.pop("PIP_NO_CACHE_DIR", None)
        done = subprocess.run(
            ["/bin/sh", "-c", self._inside(rest)],
            cwd=self._inside(image.directory),
            env=env,
            capture_output=True,
            check=False,
            text=True,
            timeout=500,
        )
        if done.returncode:
            raise BuildError(f"RUN {rest}\n{done.stdout}\n{done.stderr}")

    def _copy(self, image: Image, rest: str, other: Image | None = None) -> None:
        *sources, target = [word for word in rest.split() if not word.startswith("--from=")]
        to = Path(self._inside(target)) if target.startswith("/") else self._here(image) / target
        for source in sources:
            found = self._sent(source) if other is None else [other.files / source.lstrip("/")]
            if not found:
                raise BuildError(f"COPY {source}: not in the context")
            for path in found:
                if path.is_symlink():  # a folder of this machine, such as its Go
                    to.parent.mkdir(parents=True, exist_ok=True)
                    to.symlink_to(path.readlink())
                    continue
                if path.is_dir():
                    shutil.copytree(
                        path, to, symlinks=True, copy_function=os.link, dirs_exist_ok=True
                    )
                    continue
                into = to / path.name if target.endswith("/") else to
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, into)

    def _here(self, image: Image) -> Path:
        return Path(self._inside(image.directory))

    def _sent(self, pattern: str) -> list[Path]:
        """Files of the context without those of the ignore file, which excepts from `*`."""
        first, *excepted = (self._context / "Dockerfile.dockerignore").read_text().split()
        assert first == "*"
        paths = [path.relative_to(self._context) for path in self._context.glob(pattern)]
        allowed = [item.removeprefix("!") for item in excepted]
        sent = [path for path in paths if any(fnmatch.fnmatch(str(path), item) for item in allowed)]
        return [self._context / path for path in sent]

    def _user(self, image: Image, rest: str) -> None:
        image.user = rest

    def _entrypoint(self, image: Image, rest: str) -> None:
        image.entrypoint = json.loads(rest)

    def _cmd(self, image: Image, rest: str) -> None:
        image.command = json.loads(rest)
