"""The filter on the nodes: a file with the blocked ranges, before the first pod runs.

The program that this sample deploys into the shoot reads a ConfigMap; the file is for programs on
the nodes that start before it.
"""

from actuator.codec import decode
from actuator.provider_config import problems_of
from actuator.v1alpha1 import OperatingSystemConfig
from extensions.networkfilter.config import FilterConfig
from generic.library.webhooks import READ_CLUSTER, AdmissionRequest, mutates
from generic.library.webhooks.controlplane import OF_NODES
from generic.library.webhooks.edits import ensure_file
from generic.library.webhooks.targets import with_extension

TYPE = "networking-filter"
PATH = "/etc/network-filter/blocked"


@mutates(
    OperatingSystemConfig,
    name="node-filter",
    failure_policy="Fail",
    namespace_labels=with_extension(TYPE),
    conditions=OF_NODES,
    permissions=[READ_CLUSTER],
)
def add_filter(request: AdmissionRequest[OperatingSystemConfig]) -> None:
    """Write the blocked ranges of the shoot's configuration to a file of its machines.

    An invalid configuration adds nothing here: the status of the Extension reports it.
    """
    for one in (request.cluster().shoot.get("spec") or {}).get("extensions") or ():
        given = one.get("providerConfig") or {}
        if one.get("type") == TYPE and not problems_of(
            FilterConfig, given, "providerConfig", rules=False
        ):
            text = "".join(f"{blocked}\n" for blocked in decode(FilterConfig, given).blocked)
            ensure_file(request.new.spec.files, PATH, text, 0o644)
