"""A thin layer over boto3: clients kept, every request checked, every error translated.

Guarantees: no request leaves without `Context.check()` right before it, those that boto3 makes by
itself included (a call that was abandoned, or that lost the lease, cannot touch the cloud any
more); each is sent once, since the work queue already
backs off; each ends within CONNECT_TIMEOUT + READ_TIMEOUT; it answers or raises ActuatorError.
What the requests are about is not here.

Caveat: a request that is on the wire already when the call is abandoned, or the lease lost, is
carried out; nothing can call it back. So whoever acts next must find what it made: by its mark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import urlsplit

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

from actuator import ActuatorError, ErrorCode
from actuator.meta import Raw
from extensions.aws.credentials import Credentials
from extensions.aws.errors import CloudError

Service = Literal["ec2", "s3", "route53", "iam"]
"""A service of AWS, as boto3 names it; iam is for rehearsals."""

GLOBAL = "us-east-1"
"""The region in which services without regions are asked (AWS general reference, "Endpoints")."""

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 20.0
"""Seconds."""

_KEPT_CLIENTS = 64


class _Checks(threading.local):
    """What each thread has to ask before its next request leaves: clients are shared by calls."""

    before_sending: Callable[[], None] | None = None

    def on_before_send(self, **_event: Any) -> None:
        """boto3 is about to send (botocore documentation, "Extensibility", event before-send)."""
        if self.before_sending is not None:
            self.before_sending()


class Cloud:
    """A service in one region with one object's credentials, for the time of one actuator call."""

    def __init__(self, client: Any, checks: _Checks, check: Callable[[], None]) -> None:
        self._client = client
        self._checks = checks
        self._check = check

    def request(self, operation: str, **parameters: Any) -> Raw:
        """AWS's answer to one request. Raises CloudError, ActuatorError, or what `check` raises."""
        self._checks.before_sending = self._check
        try:
            answer: Raw = getattr(self._client, operation)(**parameters)
        except ClientError as error:
            said = error.response.get("Error", {})
            code, message = str(said.get("Code", "Unknown")), str(said.get("Message", ""))
            raise CloudError(operation, code, message) from error
        except BotoCoreError as error:
            raise _unanswered(operation, error) from error
        finally:
            self._checks.before_sending = None
        return answer

    def describe(self, operation: str, answer_key: str, filters: list[Raw]) -> list[Raw]:
        """Everything in EC2 that matches, all pages of it."""
        return [item for page in self._pages(operation, filters) for item in page[answer_key]]

    def remove(self, operation: str, **parameters: Any) -> None:
        """A request that deletes; what does not exist any more is success."""
        try:
            self.request(operation, **parameters)
        except CloudError as error:
            if not error.is_not_found:
                raise

    def _pages(self, operation: str, filters: list[Raw]) -> Iterator[Raw]:
        page = self.request(operation, Filters=filters)
        yield page
        while page.get("NextToken"):
            page = self.request(operation, Filters=filters, NextToken=page["NextToken"])
            yield page


class Clouds:
    """boto3's clients, which are slow to make: one for each account, region and service, a bounded
    number.

    `endpoint_url` None means AWS itself, or what boto3's own environment (AWS_ENDPOINT_URL) says.
    Safe to use from any thread.
    """

    def __init__(self, endpoint_url: str | None = None) -> None:
        self._endpoint_url = endpoint_url
        self._lock = threading.Lock()
        self._session: Any = None
        self._checks = _Checks()
        self._client = lru_cache(_KEPT_CLIENTS)(self._make_client)

    def open(
        self,
        credentials: Credentials | None,
        region: str,
        check: Callable[[], None],
        service: Service = "ec2",
    ) -> Cloud:
        """The cloud of these credentials; `check` runs before each request.

        None stands for those that boto3 finds by itself: environment, profile, instance role.

        Raises ActuatorError where boto3 cannot be set up: an impossible region, a profile of the
        environment that does not exist.
        """
        try:
            with self._lock:  # a client is made once, whoever asks at the same time
                client = self._client(credentials, region, service)
            return Cloud(client, self._checks, check)
        except BotoCoreError as error:
            raise ActuatorError(
                f"A client for AWS in region {region!r} cannot be made: {error}",
                codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM],
            ) from error

    def _make_client(self, credentials: Credentials | None, region: str, service: Service) -> Any:
        if self._session is None:
            self._session = Session()  # type: ignore[no-untyped-call]
        client = self._session.client(
            service,
            region_name=region,
            endpoint_url=self._endpoint_url,
            aws_access_key_id=credentials and credentials.access_key_id,
            aws_secret_access_key=credentials and credentials.secret_access_key,
            config=Config(  # type: ignore[no-untyped-call]
                connect_timeout=CONNECT_TIMEOUT,
                read_timeout=READ_TIMEOUT,
                retries={"total_max_attempts": 1},
                max_pool_connections=32,
                # a proxy of the environment is for the internet, not for this machine
                proxies={} if _is_local(self._endpoint_url) else None,
            ),
        )
        client.meta.events.register("before-send", self._checks.on_before_send)
        return client


def _unanswered(operation: str, error: BotoCoreError) -> ActuatorError:
    """Of an error of boto3 itself: AWS has not answered, or was not asked."""
    if isinstance(error, ParamValidationError):
        code = ErrorCode.ERR_CONFIGURATION_PROBLEM
    elif isinstance(error, NoCredentialsError | PartialCredentialsError):
        code = ErrorCode.ERR_INFRA_UNAUTHENTICATED
    else:
        code = ErrorCode.ERR_RETRYABLE_INFRA_DEPENDENCIES
        return ActuatorError(f"AWS did not answer {operation}: {error}", codes=[code])
    return ActuatorError(f"{operation} cannot be sent to AWS: {error}", codes=[code])


def _is_local(url: str | None) -> bool:
    host = urlsplit(url).hostname if url else None
    try:
        return host == "localhost" or (host is not None and ip_address(host).is_loopback)
    except ValueError:
        return False
