"""A thin layer over botocore: it caches clients, checks every request and translates every error.

`Context.check()` runs right before each request, also before those that botocore makes by itself,
so an abandoned call, or one that lost the lease, sends no further request. Each request is sent
once, because the work queue already backs off, and ends within CONNECT_TIMEOUT + READ_TIMEOUT. It
returns or raises ActuatorError. The content of requests does not belong here.

A request that is in flight when the call is abandoned, or the lease lost, may still complete. The
next call must therefore find the resources that it created, by their tags.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import attrs

from actuator import ActuatorError, ConfigurationError, ErrorCode, Raw
from extensions.aws.errors import CloudError
from generic.library import WorkloadIdentity

if TYPE_CHECKING:  # botocore takes 0.2 s to import: only processes that make requests do
    from botocore.exceptions import BotoCoreError
    from botocore.loaders import Loader

Service = Literal["ec2", "s3", "route53", "iam", "sts"]
"""An AWS service, as botocore names it."""

GLOBAL = "us-east-1"
"""The region for services without regions (AWS general reference, "Endpoints")."""

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 20.0
"""Seconds."""

_KEPT_CLIENTS = 64
_EARLY = timedelta(minutes=10)


@attrs.frozen
class Credentials:
    """An access key of an IAM user, or with a token the temporary one of a role."""

    access_key_id: str = attrs.field(repr=False)
    secret_access_key: str = attrs.field(repr=False)
    session_token: str | None = attrs.field(default=None, repr=False)


_UNSIGNED = Credentials("unused", "unused")
"""For a request that AWS authenticates by its token."""


_sending = threading.local()
"""Has the `check` of the thread's current request: calls share clients."""


def _before_send(**_event: Any) -> None:
    """Handle botocore's event before-send (botocore documentation, "Extensibility")."""
    if check := getattr(_sending, "check", None):
        check()


@attrs.frozen
class Cloud:
    """One service in one region with one object's credentials, for one actuator call."""

    _client_of: Callable[[Service], Any]
    _check: Callable[[], None]
    _service: Service

    def service(self, name: Service) -> Cloud:
        """Return another service with the same credentials, in the same region."""
        return attrs.evolve(self, service=name)

    def _client(self) -> Any:
        return self._client_of(self._service)

    def request(self, operation: str, **parameters: Any) -> Raw:
        """Return AWS's response. Raises CloudError, ActuatorError, or the error of `check`."""
        return self.answer(operation, lambda client: getattr(client, operation)(**parameters))

    def items(self, operation: str, answer_key: str, **parameters: Any) -> list[Raw]:
        """Return a list of all pages (boto3 documentation, "Paginators"). Raises as `request`."""

        def send(client: Any) -> Any:
            if client.can_paginate(operation):
                return client.get_paginator(operation).paginate(**parameters).build_full_result()
            return getattr(client, operation)(**parameters)

        found: list[Raw] = self.answer(operation, send).get(answer_key, [])
        return found

    def answer(self, operation: str, send: Callable[[Any], Raw]) -> Raw:
        """Return AWS's response to what `send` does with the client. Raises as `request`."""
        from botocore.exceptions import BotoCoreError, ClientError

        client = self._client()  # may send a request of its own
        _sending.check = self._check
        try:
            return send(client)
        except ClientError as error:
            said = error.response.get("Error", {})
            code = str(said.get("Code", "Unknown"))
            message = str(said.get("Message", ""))
            raise CloudError(operation, code, message) from error
        except BotoCoreError as error:
            raise _unanswered(operation, error) from error
        finally:
            _sending.check = None

    def remove(self, operation: str, **parameters: Any) -> None:
        """Send a request that deletes; a resource that does not exist is success."""
        try:
            self.request(operation, **parameters)
        except CloudError as error:
            if not error.is_not_found:
                raise


@attrs.define
class _RoleClient:
    """Returns a client with temporary credentials of a role; new ones before they expire.

    Each call of an actuator has its own: a token authorizes one object, so nothing is shared.
    """

    _make: Callable[[Credentials, Service], Any]
    _sts: Cloud
    _identity: WorkloadIdentity
    _credentials: Credentials | None = None
    _renewal: datetime | None = None
    _clients: dict[Service, Any] = attrs.field(factory=dict)

    def __call__(self, service: Service) -> Any:
        if self._renewal is None or self._identity.ctx.clock.now() >= self._renewal:
            self._assume()
        if self._credentials is not None and service not in self._clients:
            self._clients[service] = self._make(self._credentials, service)
        return self._clients[service]

    def _assume(self) -> None:
        if self._renewal is not None:
            self._identity = self._identity.refresh()
        found = self._sts.request(
            "assume_role_with_web_identity",
            RoleArn=self._identity.setting("roleARN"),
            RoleSessionName="gardener-extension",
            WebIdentityToken=self._identity.token,
        )["Credentials"]
        self._renewal = found["Expiration"] - _EARLY
        keys = found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"]
        self._credentials = Credentials(*keys)
        self._clients = {}


class Clouds:
    """A bounded cache of botocore's slow-to-create clients, by account, region and service.

    `endpoint_url` is that of a simulator on this machine; None selects AWS, or the endpoint in
    botocore's own environment (AWS_ENDPOINT_URL). Safe to use from any thread. Raises
    ConfigurationError if botocore is not installed.
    """

    def __init__(self, endpoint_url: str | None = None) -> None:
        if find_spec("botocore") is None:  # imported with the first client
            raise ConfigurationError(
                "the AWS sample needs the package `botocore`: pip install 'gardener-actuator[aws]'"
            )
        self._endpoint_url = endpoint_url
        self._lock = threading.Lock()
        self._session: Any = None
        self._client = lru_cache(_KEPT_CLIENTS)(self._make_client)

    def open(
        self,
        credentials: Credentials | WorkloadIdentity | None,
        region: str,
        check: Callable[[], None],
        service: Service = "ec2",
    ) -> Cloud:
        """Return a client with these credentials; `check` runs before each request.

        None selects the credentials that botocore finds: environment, profile, instance role.
        Raises ActuatorError if botocore cannot be set up, for example with an invalid region or a
        missing profile.
        """
        if isinstance(credentials, WorkloadIdentity):
            sts = self.open(_UNSIGNED, region, check, "sts")
            make = partial(self._make_uncached, region)
            return Cloud(_RoleClient(make, sts, credentials), check, service)
        client_of = partial(self._kept_client, credentials, region)
        client_of(service)  # an error is raised here
        return Cloud(client_of, check, service)

    def _kept_client(self, credentials: Credentials | None, region: str, service: Service) -> Any:
        from botocore.exceptions import BotoCoreError

        try:
            with self._lock:  # concurrent calls create one client
                return self._client(credentials, region, service)
        except BotoCoreError as error:
            raise ActuatorError(
                f"A client for AWS in region {region!r} cannot be created: {error}",
                codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
            ) from error

    def _make_uncached(self, region: str, credentials: Credentials, service: Service) -> Any:
        with self._lock:
            return self._make_client(credentials, region, service)

    def _make_client(self, credentials: Credentials | None, region: str, service: Service) -> Any:
        from botocore.config import Config
        from botocore.session import Session

        if self._session is None:
            self._session = Session()  # type: ignore[no-untyped-call]
            data_path = self._session.get_config_variable("data_path")
            self._session.register_component("data_loader", _service_models(data_path))
        client = self._session.create_client(
            service,
            region_name=region,
            endpoint_url=self._endpoint_url,
            aws_access_key_id=credentials and credentials.access_key_id,
            aws_secret_access_key=credentials and credentials.secret_access_key,
            aws_session_token=credentials and credentials.session_token,
            config=Config(  # type: ignore[no-untyped-call]
                connect_timeout=CONNECT_TIMEOUT,
                read_timeout=READ_TIMEOUT,
                retries={"total_max_attempts": 1},
                max_pool_connections=32,
                # the environment's proxy is for the internet, not for a simulator
                proxies={} if self._endpoint_url else None,
            ),
        )
        client.meta.events.register("before-send", _before_send)
        return client


@cache
def _service_models(data_path: str | None) -> Loader:
    """Return the loader that all sessions of this process share.

    A loader keeps the service models that it has read. Reading that of EC2 takes 0.1 s.
    """
    from botocore.loaders import create_loader

    loader: Loader = create_loader(data_path)  # type: ignore[no-untyped-call]
    return loader


def _unanswered(operation: str, error: BotoCoreError) -> ActuatorError:
    """Translate an error of botocore itself: AWS did not respond, or the request was not sent."""
    from botocore import exceptions as errors

    if isinstance(error, errors.ParamValidationError):
        code = ErrorCode.ERR_CONFIGURATION_PROBLEM
    elif isinstance(error, errors.NoCredentialsError | errors.PartialCredentialsError):
        code = ErrorCode.ERR_INFRA_UNAUTHENTICATED
    else:
        code = ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES
        return ActuatorError(f"AWS did not answer {operation}: {error}", codes=[code])
    return ActuatorError(f"{operation} cannot be sent to AWS: {error}", codes=[code])
