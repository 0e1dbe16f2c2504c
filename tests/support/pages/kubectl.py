"""The requests of the kubectl commands that pages show; another verb or option is an error."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import yaml

from actuator import Resource
from actuator.errors import NotFound
from actuator.meta import Raw
from generic.kube.client import HttpClient, path_of
from generic.kube.clusters import NAMESPACES
from generic.testing.seed import CRDS
from tests.support.cluster.harness import eventually
from tests.support.pages.documented import ROOT

__all__ = ["Kubectl"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


_PARSER = _Parser("kubectl", add_help=False)
_PARSER.add_argument("verb", choices=["annotate", "apply", "delete", "get"])
_PARSER.add_argument("words", nargs="*")
_PARSER.add_argument("-n", dest="namespace", default="default")
_PARSER.add_argument("-A", dest="everywhere", action="store_true")
_PARSER.add_argument("-f", dest="file")
_PARSER.add_argument("-o", dest="output", choices=["yaml"])
_PARSER.add_argument("--field-selector", default="")
_PARSER.add_argument("--sort-by")
_PARSER.add_argument("--cascade", default="background")


class Kubectl:
    """Sends the requests of kubectl as the administrator of a cluster."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._known: dict[str, Resource] = {}
        self._applied: list[tuple[Resource, Raw]] = []

    def __call__(self, words: Sequence[str], stdin: str = "") -> None:
        """Run a command without its first word. Raises ApiError, and ValueError if unknown."""
        given = _PARSER.parse_intermixed_args(list(words))
        if given.verb == "apply":
            text = stdin if given.file == "-" else (ROOT / given.file).read_text()
            for obj in yaml.safe_load_all(text):
                self.apply(obj)
            return
        for kind in given.words[0].split(","):
            self._act(given, self._resource(kind), given.words[1:])

    def apply(self, obj: Raw) -> None:
        """Apply an object, and wait until a CRD is served."""
        resource = self._resource(f"{obj['apiVersion']}/{obj['kind']}")
        meta = dict(obj["metadata"])
        if resource.namespaced:
            meta.setdefault("namespace", "default")
        self._client.apply(resource, obj | {"metadata": meta})
        if resource == CRDS:
            spec = obj["spec"]
            for version in spec["versions"]:
                self._resource(f"{spec['group']}/{version['name']}/{spec['names']['kind']}")
        else:
            self._applied.append((resource, meta))

    def undo(self) -> None:
        """Delete the applied objects; CRDs and namespaces stay, as those of other tests do."""
        for resource, meta in self._applied:
            key = meta["name"], meta.get("namespace", "")
            with suppress(NotFound):
                if resource != NAMESPACES:
                    self._client.delete(resource, *key)
                    self._client.patch(resource, *key, {"metadata": {"finalizers": None}})

    def _act(self, given: Any, resource: Resource, names: Sequence[str]) -> None:
        namespace = given.namespace if resource.namespaced and not given.everywhere else ""
        for name in (name for name in names if "=" not in name):
            if given.verb == "delete":
                propagation = given.cascade.capitalize()
                self._client.delete(resource, name, namespace, propagation=propagation)
            elif given.verb == "annotate":
                annotations = dict(name.split("=") for name in names[1:])
                patch = {"metadata": {"annotations": annotations}}
                self._client.patch(resource, name, namespace, patch)
            else:
                self._client.get(resource, name, namespace)
        if not names:
            query = {"fieldSelector": given.field_selector}
            self._client.send("GET", path_of(resource, namespace), query=query)

    def _resource(self, name: str) -> Resource:
        """The resource of a plural, kind or short name, or of GROUP/VERSION/KIND."""
        if name not in self._known:
            self._known = eventually(lambda: self._discover(name), seconds=10)
        return self._known[name]

    def _discover(self, name: str) -> dict[str, Resource]:
        found: dict[str, Resource] = {}
        for version, obj in self._served():
            resource = Resource(version, obj["name"], namespaced=obj["namespaced"])
            words = {obj["name"], obj["singularName"], obj["kind"], *obj.get("shortNames", ())}
            for word in {*words, *map(str.lower, words)}:
                found.setdefault(word, resource)
            found[f"{version}/{obj['kind']}"] = resource
        return found if name in found else {}

    def _served(self) -> Iterator[tuple[str, Raw]]:
        groups = json.loads(self._client.send("GET", "/apis"))["groups"]
        versions = [version["groupVersion"] for group in groups for version in group["versions"]]
        for version in ["v1", *versions]:
            path = "/api/v1" if version == "v1" else f"/apis/{version}"
            for resource in json.loads(self._client.send("GET", path))["resources"]:
                if "/" not in resource["name"]:
                    yield version, resource
