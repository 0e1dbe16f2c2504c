"""Packs manifests into the data of as few Secrets as hold them. Pure.

A Secret holds at most 1 MiB (Kubernetes documentation, "Secrets"). gardener-resource-manager reads
any number of Secrets and keys, and decompresses those with the suffix `.br`.
"""

import json
from collections.abc import Iterable

from actuator.errors import ConfigurationError
from actuator.meta import Raw

KEY = "objects.yaml"
COMPRESSED = "data.yaml.br"
LIMIT = 1 << 20
"""Maximum bytes of a Secret's data."""
_QUALITY = 5
"""A higher one takes up to sixty times as long, for a few percent."""


def packed(manifests: Iterable[Raw], owner: str) -> list[tuple[str, bytes]]:
    """Return key and content of each Secret, the same for the same manifests.

    Only a manifest that no Secret holds is compressed, in a Secret of its own. `owner` is for
    messages. Raises ConfigurationError for a manifest that is still too large.
    """
    plain = [b""]
    compressed = []
    for manifest in manifests:
        document = f"---\n{json.dumps(manifest, sort_keys=True)}\n".encode()
        if len(document) > LIMIT:
            compressed.append((COMPRESSED, _compressed(document, manifest, owner)))
        elif len(plain[-1]) + len(document) > LIMIT:
            plain.append(document)
        else:
            plain[-1] += document
    texts = [(KEY, text) for text in plain if text or not compressed]
    return [*texts, *compressed]


def _compressed(document: bytes, manifest: Raw, owner: str) -> bytes:
    meta = manifest.get("metadata") or {}
    name = "/".join(filter(None, (meta.get("namespace"), meta.get("name"))))
    problem = f"{owner}: {manifest.get('kind')} {name} has {len(document)} bytes"
    try:
        import brotli
    except ImportError:
        raise ConfigurationError(
            f"{problem}, and a Secret holds at most {LIMIT}: install the extra `brotli` to "
            "compress it (pip install 'gardener-actuator[brotli]'), or split the object"
        ) from None
    data: bytes = brotli.compress(document, quality=_QUALITY)
    if len(data) > LIMIT:
        raise ConfigurationError(
            f"{problem}, {len(data)} compressed by the extra `brotli`, and a Secret holds at most "
            f"{LIMIT}: split the object"
        )
    return data
