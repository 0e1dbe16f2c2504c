# What type checkers see of `__init__.py`, which imports a module when one of its names is used.
# ruff: noqa: F403 - the names of all modules are those of the package

from actuator.cluster import Cluster as Cluster
from actuator.cluster import ClusterSpec as ClusterSpec
from actuator.meta import Object
from actuator.v1alpha1.backupbucket import *
from actuator.v1alpha1.backupentry import *
from actuator.v1alpha1.bastion import *
from actuator.v1alpha1.containerruntime import *
from actuator.v1alpha1.controlplane import *
from actuator.v1alpha1.dnsrecord import *
from actuator.v1alpha1.extension import *
from actuator.v1alpha1.infrastructure import *
from actuator.v1alpha1.network import *
from actuator.v1alpha1.operatingsystemconfig import *
from actuator.v1alpha1.selfhostedshootexposure import *
from actuator.v1alpha1.shared import *
from actuator.v1alpha1.worker import *

KINDS: tuple[type[Object], ...]
