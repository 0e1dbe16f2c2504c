"""Programs that are not Python, such as helm and kube-apiserver: built from pinned Go modules.

The cache belongs to the user and is shared by all processes. A program on PATH is used instead of a
build. Not here: the list of programs, which is in the modules that use this package.
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
