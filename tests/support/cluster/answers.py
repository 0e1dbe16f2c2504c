"""Complete answers of the API server: status and warnings, which a Client does not return."""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
from typing import Any
from urllib.parse import urlencode, urlsplit

import attrs

from actuator import Resource
from actuator.interface import resource_of
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import path_of

CONFIG_MAPS = Resource("v1", "configmaps")
INFRASTRUCTURES = resource_of(Infrastructure.KIND)
HELD = "example.org/held"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"


@attrs.frozen
class Answer:
    """One answer."""

    status: int
    warning: str
    body: Raw

    @property
    def finalizers(self) -> list[str]:
        return self.body["metadata"].get("finalizers") or []

    @property
    def deleted_at(self) -> str | None:
        return self.body["metadata"].get("deletionTimestamp")


@attrs.frozen
class Server:
    """An API server, asked as administrator for objects of one resource in one namespace."""

    access: Any
    resource: Resource
    namespace: str

    def create(self, name: str = "", **meta: Any) -> Answer:
        """A small object; the arguments are its metadata."""
        name = name or f"x-{secrets.token_hex(4)}"
        manifest: Raw = {"metadata": {"name": name, **meta}}
        if self.resource == INFRASTRUCTURES:
            spec = {"type": "none", "region": "eu", "secretRef": {"name": "none"}}
            kind = {"apiVersion": self.resource.api_version, "kind": "Infrastructure"}
            manifest = {**kind, **manifest, "spec": spec}
        return self.ask("POST", "", manifest)

    def get(self, name: str) -> Answer:
        return self.ask("GET", name)

    def delete(self, name: str, **options: Any) -> Answer:
        return self.ask("DELETE", name, options or None)

    def patch(self, name: str, patch: Any) -> Answer:
        """A list is a JSON patch, a dict a merge patch."""
        content_type = JSON_PATCH if isinstance(patch, list) else MERGE_PATCH
        return self.ask("PATCH", name, patch, content_type)

    def release(self, name: str) -> Answer:
        """Takes all finalizers off."""
        return self.patch(name, {"metadata": {"finalizers": None}})

    def ask(
        self, method: str, name: str, body: Any = None, type: str = "application/json", **query: str
    ) -> Answer:
        address = urlsplit(self.access.url)
        context = ssl.create_default_context(cafile=self.access.ca_file)
        connection = http.client.HTTPSConnection(
            address.hostname, address.port, timeout=30, context=context
        )
        headers = {"Authorization": f"Bearer {self.access.admin_token}", "Content-Type": type}
        where = self.namespace if self.resource.namespaced else ""
        path = f"{path_of(self.resource, where, name)}?{urlencode(query)}"
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            warning = answer.getheader("Warning") or ""
            return Answer(answer.status, warning, json.loads(answer.read()))
        finally:
            connection.close()
