"""The namespace with the credentials of backups, which outlive the namespace of their shoot.

gardenlet copies them into its own namespace `garden` (Gardener documentation, "BackupEntry"); here
they are in one for each shoot.
"""

BACKUPS = frozenset({"BackupBucket", "BackupEntry"})
"""The kinds whose `spec.secretRef` names a Secret in this namespace."""


def backup_namespace(technical_id: str) -> str:
    """Return the name of the namespace."""
    return f"backup-{technical_id}"
