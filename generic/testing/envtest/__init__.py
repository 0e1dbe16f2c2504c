"""The embedded cluster: a real etcd, kube-apiserver and kube-controller-manager.

Read environment.py first (its definition and guarantees), then servers.py (command lines),
binaries.py (source of its programs) and pytest_plugin.py (the fixtures).

Most names are imported when they are first used: pytest_plugin.py loads this package in each run of
a project that asks for the fixtures.
"""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
