"""The scenario webhooks-down: shoots are force-deleted while webhooks fail.

The API server calls real webhooks of each shoot: those of the rehearsal, which then select this
shoot alone, and one of the drill for the shoot's objects. They work while the shoots are created,
then fail in the ways of FAILURES, one for each shoot in turn.
"""

import re
import threading
import time
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import Any

import attrs

from actuator.errors import ApiError, NotFound
from actuator.interface import object_class, resource_of
from actuator.meta import ForceSource, Raw
from generic.controller.predicates import TIMESTAMP
from generic.kube.clock import SystemClock
from generic.kube.patches import remove
from generic.library.webhooks import AdmissionRequest, Denied, Webhook, WebhookTarget
from generic.library.webhooks.certificates import DEFAULTS, Step, take
from generic.library.webhooks.configurations import MUTATING, VALIDATING, prefixed
from generic.library.webhooks.server import server_context
from generic.manager.options import Options
from generic.manager.registry import Registry
from generic.manager.webhooks import WebhookService
from generic.serving.metrics import Metrics
from generic.testing.drill.evidence import Life, Refusal
from generic.testing.drill.judge import FAILURES
from generic.testing.drill.run import DrillRun
from generic.testing.envtest.servers import free_port
from generic.testing.garden import SHOOT, SeedShoot
from generic.testing.polling import parallel, wait_while

_NAMED = re.compile(r'webhook "([^"]+)"')


class WebhooksDown(DrillRun):
    """A force deletion while webhooks fail."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._stack = ExitStack()
        self._services: dict[str, WebhookService] = {}
        self._failing = threading.Event()
        ways = [*FAILURES] * len(self._shoots)
        names = [shoot.technical_id for shoot in self._shoots]
        self._failures = dict(zip(names, ways, strict=False))

    def play(self) -> None:
        """See Run."""
        with self._stack:
            self.start_manager()
            for failure in dict.fromkeys(self._failures.values()):
                self._serve(failure)
            self.set_up()
            self.act(f"Letting webhooks fail: {', '.join(self._services)}")
            self._fail()
            self.get_stuck("Webhooks fail, too. ")
            self.force()

    def _serve(self, failure: str) -> None:
        """Serve and register the webhooks of the shoots with this failure, until `_stack` ends."""
        name = self._name(failure)
        port = free_port()
        options = Options(
            leader_election_id=name,
            webhook_config_mode="url",
            webhook_config_url=f"127.0.0.1:{port}",
            webhook_config_server_port=port,
        )
        webhooks = [
            self._adapted(webhook, shoot, failure)
            for shoot in self._shoots
            if self._failures[shoot.technical_id] == failure
            for webhook in (self._own(), *self._rehearsal.webhooks())
            if webhook.target is WebhookTarget.CLUSTER
        ]
        given = (Registry(options, webhooks=webhooks), self._world.admin, SystemClock(), Metrics())
        service = WebhookService(*given)
        stop = threading.Event()
        threading.Thread(target=service.run, args=(stop,), name=name, daemon=True).start()
        self._services[failure] = service
        for clean_up in (lambda: self._forget(name), lambda: service.stop(0), stop.set):
            self._stack.callback(clean_up)

    def _name(self, failure: str) -> str:
        return prefixed(f"{self._world.names.type}-{failure}")

    def _forget(self, name: str) -> None:
        for resource in (MUTATING, VALIDATING):
            with suppress(NotFound):
                self._world.admin.delete(resource, name)

    def _own(self) -> Webhook:
        classes = map(object_class, self._world.actuators)
        return Webhook(
            name="drill",
            kinds=[cls for cls in classes if cls.KIND.namespaced],
            handle=lambda _request: None,
            mutating=False,
            failure_policy="Fail",
            timeout_seconds=1,
        )

    def _adapted(self, webhook: Webhook, shoot: SeedShoot, failure: str) -> Webhook:
        """Return the webhook for this shoot alone; it can be slow or deny."""

        def handle(request: AdmissionRequest[Any]) -> Any:
            if self._failing.is_set() and failure == "slow":
                time.sleep(webhook.timeout_seconds)
            if self._failing.is_set() and failure == "denying":
                raise Denied("the drill denies every request")
            return webhook.handle(request)

        labels = {SHOOT: shoot.technical_id}
        namespaced = all(cls.KIND.namespaced for cls in webhook.kinds)
        return attrs.evolve(
            webhook,
            name=f"{webhook.name}-{shoot.name}",
            handle=handle,
            namespace_labels=labels if namespaced else {},
            object_labels={} if namespaced else labels,
        )

    def _fail(self) -> None:
        """Let the webhooks fail, and wait until gardenlet has noticed it in each shoot."""
        self._failing.set()
        for failure, service in self._services.items():
            if self._settings.broken.exempts_no_deletion:
                patch = [remove("/webhooks/0/matchConditions")]
                self._world.admin.patch(VALIDATING, self._name(failure), "", patch)
            if failure == "killed":
                service.stop(0)
            elif failure == "expired":
                past = SystemClock().now() - timedelta(days=365)
                expired = take(Step.START, None, ["x"], past, DEFAULTS).serving
                service.server.tls = server_context(expired)
                service.server.draining = True  # a new connection meets the new certificate
        covered = {life.shoot: life for life in self._lives() if life.namespace}
        patience = self._settings.patience
        parallel(
            [*covered.values()], lambda life: wait_while(lambda: self._ask(life), patience, 0.1)
        )

    def _ask(self, life: Life) -> list[Life]:
        """Write an annotation as gardenlet does; return the object if no webhook refuses that."""
        patch = {"metadata": {"annotations": {TIMESTAMP: str(self._observer.now())}}}
        resource = resource_of(self._kinds[life.kind])
        try:
            self._world.admin.patch(resource, life.name, life.namespace, patch)
        except ApiError as error:
            self._note(life, "gardenlet's update", error)
            return []
        return [life]

    def _delete_one(self, life: Life, *, force: bool) -> None:
        """See Run; a webhook that refuses it is evidence."""
        try:
            super()._delete_one(life, force=force)
        except ApiError as error:
            self._note(life, "gardenlet's deletion", error)

    def _note(self, life: Life, what: str, error: ApiError) -> None:
        """Add a refused request to the evidence. Raises an error that names no webhook."""
        if not (named := _NAMED.search(error.message)):
            raise error
        found: list[tuple[Raw, Raw]] = [
            (configuration, hook)
            for resource in (MUTATING, VALIDATING)
            for configuration in self._world.admin.list(resource)
            for hook in configuration["webhooks"]
            if hook["name"] == named[1]
        ]
        for configuration, hook in found[:1]:
            refusal = Refusal(
                shoot=life.shoot,
                webhook=f"{named[1]} of {configuration['metadata']['name']}",
                policy=hook["failurePolicy"],
                failure=FAILURES[self._failures[life.shoot]],
                request=f"{what} of {life.kind} {life.name}",
                error=error.message.partition(": ")[2],
            )
            self.evidence.webhooks.append(refusal)

    def _look_at_bystanders(self, shoot: SeedShoot) -> None:
        """See Run. By now the force deletion has ended, or webhooks block it: remove them."""
        if self._services:
            found = sorted(self.evidence.webhooks, key=attrs.astuple)  # threads added them
            self.evidence.webhooks = [
                attrs.evolve(item, seconds=self._took(item.shoot)) for item in found
            ]
        self._services.clear()
        self._stack.close()
        super()._look_at_bystanders(shoot)

    def _took(self, shoot: str) -> float | None:
        """Return the seconds of the shoot's force deletion; None: it has not ended."""
        began = self._observer.forced.get(shoot, 0.0)
        lives = [life for life in self._lives() if life.shoot == shoot]
        ends = [live for live in lives if self._kinds[live.kind].force_from is not ForceSource.NONE]
        took = [end.released - began for end in ends if end.released is not None]
        return max([0.0, *took]) if len(took) == len(ends) else None
