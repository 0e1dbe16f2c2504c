"""Answers of tenants' servers: their limits, all of which apply before text is decoded.

Each client operation, a list with all its pages, holds a Share of the memory for all tenants. It
grows with the data, and ends with the last object in use. Not here: the time (`transport`).
"""

import threading
from typing import Any
from weakref import WeakSet

from actuator.codec import is_deep
from actuator.errors import Unavailable
from actuator.meta import Raw
from generic.kube.transport import Response

PAGE = MOST_PAGES = 100
"""Objects to ask for in one page, and maximum pages of one list."""
_MIB = 2**20
_MAX_BYTES = 8 * _MIB
_MAX_ERROR = 64 * 2**10
_MAX_TOKEN = 4096
"""Maximum bytes of one answer, of an error, and of a continue token."""
_MAX_TOTAL_BYTES = 64 * _MIB
_ALL = 96 * _MIB
_SMALL = _MIB
"""Maximum memory of one operation, and of all. A small one does not depend on the others."""
_PER_VALUE = 96
"""Bytes that each of the characters `,:[{` may cost; tests measure the most expensive answers."""
_LOCK = threading.Lock()


class AnswerRefused(Unavailable):
    """An answer exceeds a limit. The message names the limit, and repeats nothing of the answer."""


class Share:
    """Memory of one operation; `request` names it in errors."""

    def __init__(self, request: str) -> None:
        self._request = request
        self.size = 0
        with _LOCK:
            _SHARES.add(self)

    def grow(self, size: int) -> None:
        """Add so many bytes. Raises Refused."""
        with _LOCK:
            wanted = self.size + size
            total = sum(share.size for share in _SHARES) + size
            if wanted <= _SMALL or (wanted <= _MAX_TOTAL_BYTES and total <= _ALL):
                self.size = wanted
                return
        who, most = (
            ("the answer needs", _MAX_TOTAL_BYTES)
            if wanted > _MAX_TOTAL_BYTES
            else ("all answers need", _ALL)
        )
        reason = f"{who} more than {most // _MIB} MiB of memory; select fewer objects"
        raise AnswerRefused(0, f"{self._request}: {reason}")

    def grow_for(self, text: bytes) -> None:
        """Add what decoding this JSON text may need at most. Raises Refused."""
        values = sum(map(text.count, (b",", b":", b"[", b"{"))) * _PER_VALUE
        # With one character beyond Latin-1, Python needs up to 4 bytes for each of a text, and
        # Python's own decoder, which reads what the typed one refuses, has two copies.
        is_narrow = text.isascii() and text.count(b"\\u") == text.count(b"\\u00")
        self.grow(len(text) * (2 if is_narrow else 9) + values)
        if is_deep(text):  # a longer text replaces each value that lies too deep
            self.grow(values)


_SHARES: WeakSet[Share] = WeakSet()


class TenantObject(dict[str, Any]):
    """An object of a tenant's server, with its Share."""

    __slots__ = ("_share",)

    def __init__(self, share: Share, obj: Raw, more: Raw | None = None) -> None:
        super().__init__(obj)
        self.update(more or {})
        self._share = share


def read_body(response: Response, request: str) -> bytes:
    """Return the body of an answer, and none of a long error. Raises Refused, OSError."""
    share = Share(request)
    body = bytearray()
    for piece in response.chunks():
        size = len(body) + len(piece)
        if response.status >= 300 and size > _MAX_ERROR:
            return b""
        if size > _MAX_BYTES:
            raise AnswerRefused(0, f"{request}: the answer has more than {_MAX_BYTES // _MIB} MiB")
        share.grow(2 * len(piece))  # with the copy that is returned
        body += piece
    return bytes(body)


def check_page(meta: object, items: Any, request: str) -> None:
    """Raise Refused unless a page is a list of at most as many objects as asked for."""
    token = (meta.get("continue") or "") if isinstance(meta, dict) else None
    is_list = isinstance(items, list) and all(isinstance(item, dict) for item in items)
    if not is_list or len(items) > PAGE:
        raise AnswerRefused(0, f"{request}: the answer is not a list of at most {PAGE} objects")
    if not (isinstance(token, str) and token.isascii() and len(token) <= _MAX_TOKEN):
        raise AnswerRefused(
            0, f"{request}: no continue token of at most {_MAX_TOKEN} ASCII characters"
        )
