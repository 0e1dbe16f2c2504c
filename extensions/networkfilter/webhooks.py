"""The filter on the nodes: a file with the blocked ranges, before the first pod runs.

The program that this sample deploys into the shoot reads a ConfigMap; the file is for programs on
the nodes that start before it.
"""

from actuator import load_config
from actuator.v1alpha1 import OperatingSystemConfig
from extensions.networkfilter.config import FilterConfig
from generic.library import webhooks

TYPE = "networking-filter"
PATH = "/etc/network-filter/blocked"


@webhooks.mutates(
    OperatingSystemConfig,
    name="node-filter",
    failure_policy="Fail",
    namespace_labels=webhooks.with_extension(TYPE),
    conditions=webhooks.OF_NODES,
    permissions=[webhooks.READ_CLUSTER],
)
def add_filter(request: webhooks.AdmissionRequest[OperatingSystemConfig]) -> None:
    """Write the blocked ranges of the shoot's configuration to a file of its machines.

    An invalid configuration adds nothing here: the status of the Extension reports it.
    """
    for extension in (request.cluster().shoot.get("spec") or {}).get("extensions") or ():
        if extension.get("type") == TYPE:
            given = extension.get("providerConfig")
            config, _ = load_config(FilterConfig, given, "providerConfig", rules=False)
            if config is not None:
                webhooks.ensure_file(request.new.spec.files, PATH, config.text, 0o644)
