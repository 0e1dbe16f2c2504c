"""Whether Gardener allows a user to force the deletion of a shoot. Pure.

Source: gardener `pkg/apis/core/validation` (ValidateForceDeletion); Gardener documentation,
"Force Deletion". Not here: the force deletion itself.
"""

from actuator.errors import ErrorCode
from actuator.meta import Raw
from generic.kube.headers import as_dict

FORCIBLE = frozenset(code for code in ErrorCode if code.allows_force_deletion)
"""The last errors of the shoot must contain one of these codes."""


def codes_of_shoot(shoot: Raw) -> list[str]:
    """Return the codes of the shoot's last errors, without duplicates."""
    errors = as_dict(shoot.get("status")).get("lastErrors")
    listed = [as_dict(error).get("codes") for error in errors] if isinstance(errors, list) else []
    return list(dict.fromkeys(str(code) for codes in listed for code in codes or []))


def not_forcible_because(shoot: Raw) -> str | None:
    """Return why Gardener would refuse the annotation, or None."""
    if as_dict(shoot.get("metadata")).get("deletionTimestamp") is None:
        return "the shoot is not being deleted; delete it first"
    if FORCIBLE.isdisjoint(codes_of_shoot(shoot)):
        return f"no last error of the shoot has one of the codes {', '.join(sorted(FORCIBLE))}"
    return None
