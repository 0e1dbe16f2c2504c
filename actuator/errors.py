"""The exceptions of the contract: those that an author raises, and those that a Client raises.

    Exception
    ├── ActuatorError            an operation failed; carries Gardener's error codes
    │   ├── ConfigurationError   the user's configuration is wrong (ERR_CONFIGURATION_PROBLEM)
    │   └── CredentialsError     the cloud refuses the credentials (ERR_INFRA_UNAUTHENTICATED)
    ├── RequeueAfter             not done yet, retry after a delay
    ├── Cancelled                Context.check(): stop working
    │   ├── DeadlineExceeded     the operation's deadline has passed
    │   ├── CallAbandoned        another call has replaced this one
    │   └── LeaseLost            another replica leads now
    ├── DecodeError              bytes or JSON that are not an object of the expected class
    └── ApiError                 the API server refused, or could not be reached
        ├── NotFound             404 that names the requested object: it does not exist
        │   └── NotServed        404, and the API server does not serve the resource
        ├── Conflict             409
        │   └── AlreadyExists    409, reason AlreadyExists
        ├── Gone                 410, the resourceVersion is too old
        ├── Forbidden            403
        ├── Unauthorized         401
        ├── Invalid              422, also a failed test in a JSON patch
        ├── TooManyRequests      429
        └── Unavailable          no response, or 5xx
            └── ShootUnreachable the API server of a shoot; also an ActuatorError

Messages are built from the data that an error carries. I/O does not belong here.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any


class ErrorCode(StrEnum):
    """Gardener's error codes (Gardener documentation, "Shoot Status", error codes)."""

    ERR_INFRA_UNAUTHENTICATED = "ERR_INFRA_UNAUTHENTICATED"
    ERR_INFRA_UNAUTHORIZED = "ERR_INFRA_UNAUTHORIZED"
    ERR_INFRA_QUOTA_EXCEEDED = "ERR_INFRA_QUOTA_EXCEEDED"
    ERR_INFRA_RATE_LIMITS_EXCEEDED = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
    ERR_INFRA_DEPENDENCIES = "ERR_INFRA_DEPENDENCIES"
    ERR_RETRYABLE_INFRA_DEPENDENCIES = "ERR_RETRYABLE_INFRA_DEPENDENCIES"
    ERR_INFRA_RESOURCES_DEPLETED = "ERR_INFRA_RESOURCES_DEPLETED"
    ERR_CLEANUP_CLUSTER_RESOURCES = "ERR_CLEANUP_CLUSTER_RESOURCES"
    ERR_CONFIGURATION_PROBLEM = "ERR_CONFIGURATION_PROBLEM"
    ERR_RETRYABLE_CONFIGURATION_PROBLEM = "ERR_RETRYABLE_CONFIGURATION_PROBLEM"
    ERR_PROBLEMATIC_WEBHOOK = "ERR_PROBLEMATIC_WEBHOOK"

    @property
    def allows_force_deletion(self) -> bool:
        """Whether Gardener lets a user force-delete a shoot that reports this code."""
        return self in _ALLOW_FORCE_DELETION


_ALLOW_FORCE_DELETION = frozenset(
    {
        ErrorCode.ERR_INFRA_UNAUTHENTICATED,
        ErrorCode.ERR_INFRA_UNAUTHORIZED,
        ErrorCode.ERR_INFRA_DEPENDENCIES,
        ErrorCode.ERR_CLEANUP_CLUSTER_RESOURCES,
        ErrorCode.ERR_CONFIGURATION_PROBLEM,
    }
)


class ActuatorError(Exception):
    """An operation failed and is retried; `codes` are written to status.lastError.codes.

    `reason`, one CamelCase word, becomes the reason of conditions; "" selects the kind's reason.
    """

    def __init__(self, message: str, *, codes: Iterable[ErrorCode] = (), reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        given: Iterable[Any] = [codes] if isinstance(codes, str) else codes
        self.codes: tuple[ErrorCode, ...] = tuple(dict.fromkeys(given))
        self.reason = reason


class ConfigurationError(ActuatorError):
    """The user's configuration cannot work; the message names the object, the field and the fix."""

    def __init__(self, message: str) -> None:
        super().__init__(message, codes=[ErrorCode.ERR_CONFIGURATION_PROBLEM])


class CredentialsError(ActuatorError):
    """The credentials are unknown, revoked or expired; the message names who has to replace them.

    Never quote the credentials, nor the text of a refused request, which may contain them.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, codes=[ErrorCode.ERR_INFRA_UNAUTHENTICATED])


class RequeueAfter(Exception):
    """The operation is not done; the framework retries it after `seconds`.

    With a `cause`, the status reports that error; otherwise it reports Processing with `message`.
    Not a subclass of ActuatorError, so that `except ActuatorError` in an actuator cannot swallow
    it. Raises ValueError unless `seconds` is a finite number of at least 0.
    """

    def __init__(
        self, seconds: float, message: str = "", *, cause: BaseException | None = None
    ) -> None:
        self.seconds: float = check_seconds(seconds)
        """The seconds until the retry."""
        super().__init__(message or (str(cause) if cause else f"Next attempt in {seconds:g} s"))
        self.cause = cause


def check_seconds(seconds: float) -> float:
    """Return the seconds. Raises ValueError unless they are a finite number of at least 0."""
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds must be finite and at least 0, got {seconds!r}")
    return float(seconds)


class Cancelled(Exception):
    """Context.check() found that this call must stop."""


class DeadlineExceeded(Cancelled):
    """The operation's deadline has passed."""


class CallAbandoned(Cancelled):
    """Another call has replaced, or is about to replace, this one."""


class LeaseLost(Cancelled):
    """This process is no longer the leader: another replica may already be acting."""


class DecodeError(Exception):
    """The JSON is not an object of the expected class; the message names the field."""


class ApiError(Exception):
    """The API server did not execute a request.

    `status` is the HTTP status (0 without a response), `reason` the Kubernetes status reason,
    `causes` the reasons in `details.causes`, `retry_after` the seconds of a Retry-After header,
    `about` the object that the answer names, "secrets/NAME" or "plural.group/NAME".
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str = "",
        causes: Iterable[str] = (),
        retry_after: float | None = None,
        about: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason
        self.causes: tuple[str, ...] = tuple(causes)
        self.retry_after = retry_after
        self.about = about


class NotFound(ApiError):
    """404 that names the requested object: it does not exist.

    A 404 about another object, such as the namespace, or from a proxy is an ApiError of status 404.
    """


class NotServed(NotFound):
    """404, and the API server's own lists lack the resource: it has no objects."""


class Conflict(ApiError):
    """409: the request conflicts with the current state of the object."""


class AlreadyExists(Conflict):
    """409 with reason AlreadyExists."""


class Gone(ApiError):
    """410: the resourceVersion is too old; list again."""


class Forbidden(ApiError):
    """403: RBAC or an admission plugin denied the request."""


class Unauthorized(ApiError):
    """401: the API server does not accept the credentials."""


class Invalid(ApiError):
    """422: validation failed, or a test in a JSON patch failed."""


class TooManyRequests(ApiError):
    """429."""


class Unavailable(ApiError):
    """No response in time, a broken connection, or 5xx."""


class ShootUnreachable(Unavailable, ActuatorError):
    """No access to the API server of a shoot; the message has the reason, without credentials."""

    def __init__(self, message: str) -> None:
        super().__init__(0, message)


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def api_error(
    http_status: int,
    status: Mapping[str, Any],
    *,
    retry_after: float | None = None,
    requested: str | None = None,
) -> ApiError:
    """Return the exception for an HTTP status and the (possibly empty) `Status` in its body.

    `requested` is the object, as in `about`, or its collection; None if unknown. An answer that
    names another object is no NotFound and no AlreadyExists.
    """
    reason = str(status.get("reason") or "")
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    about = _named(status)
    cls = _BY_STATUS.get(http_status) or (Unavailable if http_status >= 500 else ApiError)
    if cls is NotFound and requested not in (None, about):
        cls = ApiError
    is_there = requested is None or about.startswith(f"{requested}/")
    if cls is Conflict and reason == "AlreadyExists" and is_there:
        cls = AlreadyExists
    return cls(
        http_status,
        str(status.get("message") or f"HTTP {http_status}"),
        reason=reason,
        causes=[str(c.get("reason", "")) for c in causes or () if isinstance(c, Mapping)],
        retry_after=retry_after,
        about=about,
    )


def _named(status: Mapping[str, Any]) -> str:
    """Return the object that a Status names; "" for the denial of a webhook, which chooses it."""
    details = status.get("details")
    if not isinstance(details, Mapping) or 'admission webhook "' in str(status.get("message")):
        return ""
    name, plural, group = (str(details.get(key) or "")[:256] for key in ("name", "kind", "group"))
    resource = f"{plural}.{group}" if group else plural
    return f"{resource}/{name}" if name and plural else ""


def codes_of(error: BaseException | None) -> tuple[ErrorCode, ...]:
    """Return the codes of an error and of all errors in its chain of causes."""
    codes: dict[ErrorCode, None] = {}
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ActuatorError):
            codes.update(dict.fromkeys(error.codes))
        error = (error.cause if isinstance(error, RequeueAfter) else None) or error.__cause__
    return tuple(codes)
