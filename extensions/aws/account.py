"""OnAws: the common base of this extension's actuators, with access to the cloud."""

from actuator import Context, ExternalResource
from actuator.meta import Object, SecretReference
from extensions.aws.cloud import Cloud, Clouds, Service
from extensions.aws.credentials import read_credentials
from extensions.aws.verification import still_exists


class OnAws:
    """A base class beside `Actuator`; see `Clouds` for `endpoint_url`."""

    def __init__(self, endpoint_url: str | None = None) -> None:
        self._clouds = Clouds(endpoint_url)

    def still_exists(self, resource: ExternalResource, /) -> bool | None:
        """Look up the resource by its id, or by its tags."""
        return still_exists(self._clouds, resource)

    def _open(
        self,
        ctx: Context,
        obj: Object,
        secret: SecretReference,
        region: str,
        service: Service = "ec2",
    ) -> Cloud:
        """Return a client for the account whose credentials are in the Secret that `obj` refers to.

        Raises ConfigurationError, ActuatorError and ApiError.
        """
        credentials = read_credentials(ctx, secret, f"{obj.KIND.name} {obj.key}")
        return self._clouds.open(credentials, region, ctx.check, service)
