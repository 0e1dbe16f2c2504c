"""WebhookService: serves a manager's webhooks, keeps their certificates, registers them.

It needs no leadership: every replica serves, and each may take the next step of a rotation. The
certificates are in one Secret that all replicas share, unless the operator gives a certificate or
the manager runs outside of a cluster. Not here: the server and the steps (`generic.library`).
"""

import logging
import os
import threading
from datetime import datetime, timedelta
from pathlib import Path

import attrs

from actuator.errors import AlreadyExists, ConfigurationError, Invalid, RequeueAfter
from actuator.interface import SECRETS, Client, Clock, Permission, Resource
from actuator.meta import Raw
from generic.kube.access import service_account
from generic.kube.certificates import KeyPair
from generic.kube.client import connect
from generic.kube.clock import eventual_now
from generic.kube.clusters import NAMESPACES
from generic.kube.patches import add, test_version
from generic.kube.timers import Timers
from generic.library import lookup
from generic.library.manifests import manifest
from generic.library.webhooks import WebhookTarget, certificates, shoot
from generic.library.webhooks.configurations import (
    MUTATING,
    VALIDATING,
    Endpoint,
    Mode,
    configurations,
)
from generic.library.webhooks.publishing import publish
from generic.library.webhooks.server import WebhookServer, server_context
from generic.manager.options import Options
from generic.manager.registry import Registry
from generic.serving.httpserver import parse_address
from generic.serving.metrics import Metrics

logger = logging.getLogger(__name__)

_PASS_SECONDS = 60.0
_RETRY_SECONDS = 2.0
_MAX_STEPS = 4
SOURCE_CLUSTER = "SOURCE_CLUSTER"
"""Environment variable of Gardener's admission components: "enabled" if the manager's kubeconfig is
for another cluster than the one it runs in, where its Secret is."""


def endpoint_of(options: Options) -> Endpoint:
    """Return where these options say that the server is reached."""
    return Endpoint(
        mode=Mode(options.webhook_config_mode),
        name=options.extension,
        namespace=options.webhook_config_namespace,
        port=options.webhook_config_service_port or options.webhook_config_server_port,
        host=options.webhook_config_url,
    )


def secret_name(options: Options) -> str:
    """Return the name of the Secret with the certificates."""
    return f"{endpoint_of(options).service}-webhooks"


def permissions(registry: Registry) -> list[Permission]:
    """Return the permissions of a service for the webhooks of a registry."""
    options = registry.options
    webhooks = registry.webhooks
    needed: list[Permission] = []
    if not webhooks or not options.serves_webhooks:
        return needed
    endpoint = endpoint_of(options)
    needed += (permission for webhook in webhooks for permission in webhook.permissions)
    if options.webhook_config_namespace and options.webhook_config_cert_dir is None:
        secrets = SECRETS.permission("get", "patch", namespace=endpoint.namespace)
        needed.append(attrs.evolve(secrets, names=[secret_name(options)]))
        needed.append(SECRETS.permission("create", namespace=endpoint.namespace))
    for mutating, resource in ((True, MUTATING), (False, VALIDATING)):
        if any(
            webhook.target is WebhookTarget.CLUSTER and webhook.mutating is mutating
            for webhook in webhooks
        ):
            needed.append(resource.permission("create"))
        # Also of the other kind: a former extension may have left webhooks there.
        needed.append(attrs.evolve(resource.permission("get", "patch"), names=[endpoint.service]))
    if registry.shoot_origin:
        needed += shoot.permissions()
    if options.webhook_owner:
        needed.append(attrs.evolve(NAMESPACES.permission("get"), names=[options.webhook_owner]))
    return needed


class WebhookService:
    """The webhooks of a running manager."""

    def __init__(
        self,
        registry: Registry,
        client: Client,
        clock: Clock,
        metrics: Metrics,
        lifetimes: certificates.Lifetimes = certificates.DEFAULTS,
    ) -> None:
        """Raise ConfigurationError if the address is invalid."""
        options = registry.options
        webhooks = registry.webhooks
        address = parse_address(
            f"{options.webhook_config_server_host}:{options.webhook_config_server_port}"
        )
        if address is None:
            raise ConfigurationError("set --webhook-config-server-port to a port from 1 to 65535")
        self._webhooks = webhooks
        self._options = options
        self._endpoint = endpoint_of(options)
        self._client = client
        self._clock = clock
        self._lifetimes = lifetimes
        self._shoot_origin = registry.shoot_origin
        self._timers = Timers("webhook-timeouts", clock)
        self._metrics = metrics.webhooks(webhook.name for webhook in webhooks)
        self.server = WebhookServer(webhooks, address, client, self._timers, self._metrics)
        self._current: certificates.Certificates | None = None
        self._served: KeyPair | None = None
        self._expires: datetime | None = None
        self._published: bytes | None = None
        self._is_late = False
        """Whether a shoot may still have other authorities."""
        self._passed_at = self._published_at = clock.monotonic()
        self._error = "no certificate yet"
        self._conflicts: dict[Resource, str] = {}

    @property
    def authorities(self) -> bytes:
        """The certificates that API servers have to trust, PEM; b"" before the first pass."""
        return self._published or b""

    def shoot_manifests(self) -> list[Raw] | None:
        """Return the configurations for shoots; None if there is none. Raises RequeueAfter."""
        if not self._has_shoots:
            return None
        if self._published is None:
            raise RequeueAfter(_RETRY_SECONDS, "the webhooks have no certificate yet")
        return shoot.manifests(self._webhooks, self._endpoint, self._published)

    def run(self, stop: threading.Event) -> None:
        """Keep serving until `stop` is set."""
        interval = min(_PASS_SECONDS, self._lifetimes.settle.total_seconds() / 4)
        while not stop.is_set():
            try:
                self._pass()
                self._error = ""
                self._passed_at = self._clock.monotonic()
            except Exception as error:  # the next pass may succeed; what is served stays served
                self._error = str(error) or type(error).__name__
                logger.warning("webhook setup failed", extra={"fields": {"error": self._error}})
            stop.wait(min(_RETRY_SECONDS, interval) if self._error else interval)

    def problem(self) -> str | None:
        """Return why the webhooks are not served, or None."""
        if not self.server.listening:
            return self._error or "shutting down"
        if self._expires is None or self._expires <= self._clock.now():
            return "the serving certificate has expired"
        seconds = self._clock.monotonic() - self._passed_at
        is_late = seconds > self._lifetimes.settle.total_seconds() / 2  # others may have rotated
        return self._error if self._error and (is_late or self._published is None) else None

    def stop(self, seconds: float) -> bool:
        """Stop serving; return False if requests were still running at the end."""
        finished = self.server.stop(seconds)
        self._timers.stop()
        return finished

    def _pass(self) -> None:
        """Serve the shared certificate, publish its authorities, take the steps that are due."""
        if self._options.webhook_config_cert_dir is not None:
            self._use_given(self._options.webhook_config_cert_dir)
            return
        secret = self._read()
        found = certificates.from_secret(secret, self._lifetimes) if secret else None
        if self._current and self._endpoint.namespace and found is None:
            secret = self._write(secret, self._current)  # it was deleted, or is not one of ours
            found = certificates.from_secret(secret, self._lifetimes)
        if secret is not None:
            self._current = found
        hosts = self._endpoint.host_names
        for _ in range(_MAX_STEPS):
            if self._current is not None:
                self._serve(self._current.serving)
                self._publish(self._current.bundle)
            now = self._clock.now()
            is_trusted = eventual_now(self._clock) is not None
            since = now - timedelta(seconds=self._clock.monotonic() - self._published_at)
            step = certificates.plan(
                self._current, since, hosts, now, self._lifetimes, is_trusted=is_trusted
            )
            if step is certificates.Step.NOTHING:
                return
            self._current = certificates.take(step, self._current, hosts, now, self._lifetimes)
            if self._options.webhook_config_namespace:
                secret = self._write(secret, self._current)
                self._current = certificates.from_secret(secret, self._lifetimes)
            logger.info("webhook certificates changed", extra={"fields": {"step": step.value}})

    def _use_given(self, folder: Path) -> None:
        """Serve the certificate of the operator, and publish its ca.crt or the certificate."""
        try:
            pair = KeyPair((folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes())
            authority = folder / "ca.crt"
            trusted = authority.read_bytes() if authority.exists() else pair.certificate
        except OSError as error:
            raise ConfigurationError(
                f"--webhook-config-cert-dir {folder}: cannot read {error.filename}: "
                f"{error.strerror}; provide tls.crt, tls.key and ca.crt"
            ) from error
        self._serve(pair)
        self._publish(trusted)

    def _read(self) -> Raw | None:
        namespace = self._endpoint.namespace
        if not namespace:
            return None
        return lookup.find(self._secrets, SECRETS, secret_name(self._options), namespace)

    def _write(self, old: Raw | None, new: certificates.Certificates) -> Raw:
        """Write the Secret, unless another replica was faster; return it as it is then."""
        name = secret_name(self._options)
        namespace = self._endpoint.namespace
        try:
            if old is None:
                created = manifest("v1", "Secret", name, namespace, data=new.data())
                return self._secrets.create(SECRETS, created)
            patch = [test_version(old), add("/data", new.data())]
            return self._secrets.patch(SECRETS, name, namespace, patch)
        except (AlreadyExists, Invalid):
            return self._secrets.get(SECRETS, name, namespace)

    @property
    def _secrets(self) -> Client:
        if os.environ.get(SOURCE_CLUSTER) != "enabled":
            return self._client
        return connect(service_account())

    def _serve(self, pair: KeyPair) -> None:
        if pair == self._served:
            return
        self.server.tls = server_context(pair)
        self._expires = certificates.expiry(pair)
        self._served = pair
        self._metrics.certificate(self._expires)
        if not self.server.listening:
            self.server.start()
            logger.info("serving webhooks", extra={"fields": {"address": str(self.server.address)}})

    def _publish(self, authorities: bytes) -> None:
        """Write the configurations, also if others changed them since."""
        webhooks = [
            webhook for webhook in self._webhooks if webhook.target is WebhookTarget.CLUSTER
        ]
        rendered = dict(configurations(webhooks, self._endpoint, authorities))
        owners = self._owners()
        conflicts = {}
        for resource in (MUTATING, VALIDATING):
            empty = {"metadata": {"name": self._endpoint.service}, "webhooks": []}
            wanted = rendered.get(resource, empty)
            owned = {**wanted, "metadata": {**wanted["metadata"], **owners}}
            if text := publish(self._client, resource, owned):
                conflicts[resource] = text
        self._show(conflicts)
        if self._published != authorities:  # from now on, actuators deploy them to shoots
            self._published = authorities
            self._published_at = self._clock.monotonic()
            self._is_late = bool(self._shoot_origin) and self._has_shoots
        if self._is_late:
            manifests = shoot.manifests(self._webhooks, self._endpoint, authorities)
            self._is_late = not shoot.refresh(self._client, manifests, self._shoot_origin)

    def _show(self, conflicts: dict[Resource, str]) -> None:
        """Log what other clients changed in the configurations, once for each change."""
        for resource, text in conflicts.items() - self._conflicts.items():
            fields = {"resource": str(resource), "name": self._endpoint.service, "changed": text}
            logger.warning("webhook configuration changed by others", extra={"fields": fields})
        self._conflicts = conflicts
        self._metrics.conflicts(len(conflicts))

    @property
    def _has_shoots(self) -> bool:
        return any(webhook.target is WebhookTarget.SHOOT for webhook in self._webhooks)

    def _owners(self) -> Raw:
        """Return the metadata with which a configuration is deleted with the namespace."""
        name = self._options.webhook_owner
        if not name:
            return {}
        uid = self._client.get(NAMESPACES, name)["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Namespace", "name": name, "uid": uid}
        return {"ownerReferences": [owner]}
