"""The kinds of the machine-controller-manager as classes, for reading and writing by a Worker.

Only the fields in use; `extra` keeps the rest (machine-controller-manager documentation,
"Machine CRDs", machine.sapcloud.io/v1alpha1). Not here: the creation of these objects
(`generic.library.worker`), and the simulated machine controller
(`generic.testing.machinecontroller`).
"""

from typing import Annotated, ClassVar

import attrs

from actuator.interface import SeedObjects, resource_of
from actuator.meta import KeepsUnknownFields, Kind, Object, Raw, Schema, SecretReference
from actuator.v1alpha1 import LabelSelector

GROUP = "machine.sapcloud.io"
MCM_FINALIZER = "machine.sapcloud.io/machine-controller-manager"
"""Finalizer on deployments, sets, classes and Secrets of classes (machine-controller-manager)."""

MC_FINALIZER = "machine.sapcloud.io/machine-controller"
"""Finalizer on machines, classes and Secrets of classes (the provider's machine-controller)."""

DEPLOYMENT_NAME = "name"
"""Label of sets and machines: the machine deployment they belong to."""

FORCE_DELETION = ("force-deletion", "True")
"""Label that lets the machine-controller delete a machine without draining its node."""


def _kind(name: str, plural: str, short: str) -> Kind:
    return Kind(name=name, plural=plural, short_names=(short,), group=GROUP, finalizer="")


@attrs.define(kw_only=True)
class MachineClass(Object):
    """The properties of machines at their provider; this kind has neither spec nor status."""

    KIND: ClassVar[Kind] = _kind("MachineClass", "machineclasses", "mcc")

    provider: str = ""
    provider_spec: Annotated[Raw, Schema(required=True)] = attrs.field(factory=dict)
    secret_ref: SecretReference | None = None
    credentials_secret_ref: SecretReference | None = None
    node_template: Raw | None = None


@attrs.frozen(kw_only=True)
class ClassReference(KeepsUnknownFields):
    """Which class a machine is of."""

    kind: str = ""
    name: str = ""
    api_group: str = ""


@attrs.frozen(kw_only=True)
class MachineSpec(KeepsUnknownFields):
    """One machine. Times like "10m"."""

    class_: ClassReference = attrs.field(factory=ClassReference, metadata={"wire": "class"})
    node_template: Raw | None = None
    provider_id: str = attrs.field(default="", metadata={"wire": "providerID"})
    drain_timeout: str | None = None
    health_timeout: str | None = None
    creation_timeout: str | None = None
    in_place_update_timeout: str | None = None
    disable_health_timeout: bool | None = None
    machine_preserve_timeout: str | None = None
    max_evict_retries: Annotated[int | None, Schema(format="int32")] = None
    node_conditions: str | None = None


@attrs.frozen(kw_only=True)
class TemplateMetadata(KeepsUnknownFields):
    """metav1.ObjectMeta, as far as a template of machines has it."""

    labels: dict[str, str] = attrs.field(factory=dict)
    annotations: dict[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class MachineTemplate(KeepsUnknownFields):
    """The template of new machines."""

    metadata: TemplateMetadata = attrs.field(factory=TemplateMetadata)
    spec: MachineSpec = attrs.field(factory=MachineSpec)


@attrs.frozen(kw_only=True)
class MachineOperation(KeepsUnknownFields):
    """The last operation on a machine."""

    description: str = ""
    error_code: str = ""
    state: str = ""
    type: str = ""


@attrs.frozen(kw_only=True)
class FailedMachine(KeepsUnknownFields):
    """A machine that could not be made, or be kept."""

    name: str = ""
    last_operation: MachineOperation = attrs.field(factory=MachineOperation)


@attrs.frozen(kw_only=True)
class MachineDeploymentSpec(KeepsUnknownFields):
    """How many machines, of which class, and how they are replaced."""

    replicas: Annotated[int, Schema(format="int32", required=True)] = 0
    min_ready_seconds: Annotated[int, Schema(format="int32")] = 0
    strategy: Raw = attrs.field(factory=dict)
    selector: LabelSelector = attrs.field(factory=LabelSelector)
    template: Annotated[MachineTemplate, Schema(required=True)] = attrs.field(
        factory=MachineTemplate
    )
    auto_preserve_failed_machine_max: Annotated[int | None, Schema(format="int32")] = None


@attrs.frozen(kw_only=True)
class RolloutCondition(KeepsUnknownFields):
    """A condition of a machine or a machine deployment, with fewer fields than Gardener's."""

    type: Annotated[str, Schema(required=True)] = ""
    status: Annotated[str, Schema(required=True)] = ""
    reason: str = ""
    message: str = ""


@attrs.define(kw_only=True)
class RolloutStatus(KeepsUnknownFields):
    """How far the machine-controller-manager is with a machine deployment."""

    observed_generation: Annotated[int, Schema(format="int64")] = 0
    replicas: Annotated[int, Schema(format="int32")] = 0
    updated_replicas: Annotated[int, Schema(format="int32")] = 0
    available_replicas: Annotated[int, Schema(format="int32")] = 0
    unavailable_replicas: Annotated[int, Schema(format="int32")] = 0
    conditions: list[RolloutCondition] = attrs.field(factory=list)
    failed_machines: list[FailedMachine] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class MachineDeployment(Object):
    """Machines that are all alike, and replaced one after the other."""

    KIND: ClassVar[Kind] = _kind("MachineDeployment", "machinedeployments", "mcd")

    spec: Annotated[MachineDeploymentSpec, Schema()] = attrs.field(factory=MachineDeploymentSpec)
    status: RolloutStatus = attrs.field(factory=RolloutStatus)


@attrs.frozen(kw_only=True)
class MachineSetSpec(KeepsUnknownFields):
    """How many machines of one class."""

    replicas: Annotated[int, Schema(format="int32")] = 0
    selector: LabelSelector = attrs.field(factory=LabelSelector)
    template: MachineTemplate = attrs.field(factory=MachineTemplate)


@attrs.define(kw_only=True)
class MachineSetStatus(KeepsUnknownFields):
    """How many there are."""

    replicas: Annotated[int, Schema(format="int32")] = 0
    available_replicas: Annotated[int, Schema(format="int32")] = 0


@attrs.define(kw_only=True)
class MachineSet(Object):
    """The machines of one class in a machine deployment."""

    KIND: ClassVar[Kind] = _kind("MachineSet", "machinesets", "mcs")

    spec: Annotated[MachineSetSpec, Schema()] = attrs.field(factory=MachineSetSpec)
    status: MachineSetStatus = attrs.field(factory=MachineSetStatus)


@attrs.frozen(kw_only=True)
class CurrentStatus(KeepsUnknownFields):
    """The state of a machine; one with a `preserve_expiry_time` is kept though it failed."""

    phase: str = ""
    preserve_expiry_time: Annotated[str | None, Schema(format="date-time")] = None


@attrs.define(kw_only=True)
class MachineStatus(KeepsUnknownFields):
    """The status that the machine-controller writes."""

    current_status: CurrentStatus = attrs.field(factory=CurrentStatus)
    conditions: list[RolloutCondition] = attrs.field(factory=list)
    last_operation: MachineOperation | None = None


@attrs.define(kw_only=True)
class Machine(Object):
    """One machine."""

    KIND: ClassVar[Kind] = _kind("Machine", "machines", "mc")

    spec: Annotated[MachineSpec, Schema()] = attrs.field(factory=MachineSpec)
    status: MachineStatus = attrs.field(factory=MachineStatus)


MACHINE_KINDS = (MachineDeployment, MachineSet, Machine, MachineClass)
MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, MACHINE_CLASSES = (
    resource_of(cls.KIND) for cls in MACHINE_KINDS
)

MACHINE_OBJECTS = tuple(
    SeedObjects(resource_of(cls.KIND), [MCM_FINALIZER, MC_FINALIZER]) for cls in MACHINE_KINDS
)
"""All machine objects in a shoot's namespace, parents first."""
