"""Records of force deletions: of each one, and of external resources that may remain (Orphans)."""

from actuator.facade import public_names

__all__, __getattr__ = public_names(__name__, __file__)
