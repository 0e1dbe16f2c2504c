"""The kinds of extensions.gardener.cloud/v1alpha1, one module each, and the tuple `KINDS`.

A module is imported when one of its names is used: all together take 50 ms.
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
