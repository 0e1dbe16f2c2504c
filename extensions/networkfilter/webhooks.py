"""The filter on the nodes: a file with the blocked ranges, before the first pod runs.

The program that this sample deploys into the shoot reads a ConfigMap; the file is for programs on
the nodes that start before it.
"""

from actuator import load_config
from actuator.v1alpha1 import OperatingSystemConfig
from extensions.networkfilter.config import FilterConfig
from generic.library.webhooks import (
    OF_NODES,
    READ_CLUSTER,
    AdmissionRequest,
    ensure_file,
    mutates,
    with_extension,
)

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
    for extension in (request.cluster().shoot.get("spec") or {}).get("extensions") or ():
        if extension.get("type") == TYPE:
            given = extension.get("providerConfig")
            config, _ = load_config(FilterConfig, given, "providerConfig", rules=False)
            if config is not None:
                ensure_file(request.new.spec.files, PATH, config.text, 0o644)
