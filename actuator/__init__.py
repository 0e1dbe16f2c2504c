"""The contract between an extension and the framework, without network or threads.

Read in this order: `interface` (the methods that an author implements), `errors` (the exceptions to
raise), `meta` and `v1alpha1` (the objects), `cluster` (the state of a shoot), `codec` (JSON).
"""

from actuator.facade import public_names
from actuator.shared_names import share_names

__all__, __getattr__ = public_names(__name__, __file__)
share_names()
