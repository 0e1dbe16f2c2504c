"""LocalOperatingSystem: the configuration of a machine's disk, for an OperatingSystemConfig.

For purpose provision it returns the user data of new machines. For purpose reconcile it writes the
additional files and units of this operating system to the status; gardener-node-agent applies them
beside those in the spec. No resource exists outside, and the framework manages the Secret with the
user data, so there is nothing to delete, to migrate, or to force-delete.
"""

import base64
from collections.abc import Iterable, Iterator

from actuator import (
    Actuator,
    ActuatorError,
    Base64,
    Cluster,
    Context,
    FieldProblem,
    Provisioned,
    Resource,
    v1alpha1,
)
from extensions.local.userdata import script
from generic.library import find

_SECRETS = Resource("v1", "secrets")
_RELEASE = v1alpha1.File(
    path="/etc/local-os-release",
    permissions=0o644,
    content=v1alpha1.FileContent(inline=v1alpha1.FileContentInline(data="NAME=local-os\n")),
)
_CONTAINERD = v1alpha1.Unit(
    name="containerd.service",
    drop_ins=[v1alpha1.DropIn(name="10-local-os.conf", content="[Service]\nLimitNOFILE=1048576\n")],
)


class LocalOperatingSystem(Actuator[v1alpha1.OperatingSystemConfig]):
    """User data as a shell script."""

    permissions = (_SECRETS.permission("get"),)

    def validate(
        self, ctx: Context, obj: v1alpha1.OperatingSystemConfig, cluster: Cluster
    ) -> Iterable[FieldProblem]:
        """Yield the problems of the files for this operating system."""
        if obj.spec.purpose not in list(v1alpha1.Purpose):
            detail = f"{obj.spec.purpose!r} is not supported; update the extension"
            yield FieldProblem(field="spec.purpose", detail=detail)
        for index, file in enumerate(obj.spec.files):
            yield from _problems(f"spec.files[{index}]", file, is_new=_is_new(obj))

    def reconcile(
        self, ctx: Context, obj: v1alpha1.OperatingSystemConfig, cluster: Cluster
    ) -> Provisioned:
        """Return a new machine's user data, or report the additions for a running one."""
        if _is_new(obj):
            files = [(file, _content(ctx, obj, file)) for file in obj.spec.files]
            return Provisioned(user_data=script(files, obj.spec.units))
        obj.status.extension_files = [_RELEASE]
        obj.status.extension_units = [_CONTAINERD] if obj.spec.cri_config else []
        return Provisioned()

    def delete(self, ctx: Context, obj: v1alpha1.OperatingSystemConfig, cluster: Cluster) -> None:
        """Do nothing: nothing exists but the status."""


def _is_new(obj: v1alpha1.OperatingSystemConfig) -> bool:
    """Whether the configuration is for machines that do not run yet."""
    return obj.spec.purpose == v1alpha1.Purpose.PROVISION


def _problems(where: str, file: v1alpha1.File, *, is_new: bool) -> Iterator[FieldProblem]:
    inline = file.content.inline
    if not file.path.startswith("/"):
        yield FieldProblem(field=f"{where}.path", detail=f"{file.path!r} does not begin with /")
    if is_new and inline is None and file.content.secret_ref is None:
        yield FieldProblem(
            field=f"{where}.content",
            detail="a new machine takes no file from an image; use inline or secretRef",
        )
    if inline is not None and _decoded(inline) is None:
        yield FieldProblem(
            field=f"{where}.content.inline",
            detail=f"the data is not of encoding {inline.encoding!r}; write it as text with "
            'encoding "", or in base64 with encoding "b64"',
        )


def _decoded(inline: v1alpha1.FileContentInline) -> bytes | None:
    if inline.encoding == "":
        return inline.data.encode()
    if inline.encoding != "b64":
        return None
    try:
        return base64.b64decode("".join(inline.data.split()), validate=True)
    except ValueError:
        return None


def _content(ctx: Context, obj: v1alpha1.OperatingSystemConfig, file: v1alpha1.File) -> bytes:
    """Return the content of the file. Raises ActuatorError if its Secret cannot be used."""
    if file.content.inline is not None:
        return _decoded(file.content.inline) or b""
    reference = file.content.secret_ref
    if reference is None:
        return b""
    where = f"Secret {obj.metadata.namespace}/{reference.name}, of which {file.path} is made,"
    secret = find(ctx.client, _SECRETS, reference.name, obj.metadata.namespace)
    if secret is None:
        raise ActuatorError(f"{where} does not exist; create it")
    data = (secret.get("data") or {}).get(reference.data_key)
    if data is None:
        raise ActuatorError(f"{where} has no key {reference.data_key!r}; add it")
    return Base64(data).decode_bytes()
