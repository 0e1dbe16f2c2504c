"""Issued: a key pair as an author gets it, with the name of its Secret and whom to trust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from generic.library.secrets.kept import Kept

BUNDLE = "bundle.crt"


@attrs.frozen(kw_only=True, eq=False)
class Issued(Mapping[str, bytes]):
    """A key pair as it is now.

    As a mapping it is the Secret's data with `bundle.crt` beside them: a checksum of it changes
    when the key pair does, and when somebody else is to be trusted.
    """

    kept: Kept
    bundle: bytes = attrs.field(repr=False)
    """The certificates of all authorities that count now, PEM: its own for an authority, those
    of its authority for a certificate."""

    @property
    def secret_name(self) -> str:
        """What a pod mounts."""
        return self.kept.secret_name

    @property
    def certificate(self) -> bytes:
        """PEM."""
        return self.kept.pair.certificate

    @property
    def key(self) -> bytes:
        """The private key, PEM."""
        return self.kept.pair.key

    def __getitem__(self, name: str) -> bytes:
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def _data(self) -> dict[str, bytes]:
        return {**self.kept.content, BUNDLE: self.bundle}
