"""Transport through a proxy, for which the official package has configured a urllib3 pool.

Only a configuration with a proxy imports this module, and with it urllib3.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, ReadTimeoutError, SSLError
from urllib3.response import BaseHTTPResponse

from generic.kube.transport import CONNECT_SECONDS, Response

_CHUNK = 64 * 1024


class ProxiedTransport:
    """See HttpTransport."""

    def __init__(self, server: str, pools: urllib3.PoolManager) -> None:
        self._pools = pools
        self._origin = urlsplit(server)._replace(path="", query="", fragment="").geturl()

    def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float | None,
    ) -> Response:
        """See HttpTransport."""
        connect = CONNECT_SECONDS if timeout is None else min(CONNECT_SECONDS, timeout)
        with _as_os_errors():
            response = self._pools.urlopen(
                method,
                f"{self._origin}{target}",
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=connect, read=timeout),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
        return _ProxiedResponse(response)


class _ProxiedResponse:
    """See Response."""

    def __init__(self, response: BaseHTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    def chunks(self) -> Iterator[bytes]:
        """See Response."""
        with _as_os_errors():
            yield from self._response.stream(_CHUNK, decode_content=False)
            self._response.release_conn()

    def shutdown(self) -> None:
        """See Response."""
        self._response.shutdown()

    def close(self) -> None:
        """See Response."""
        self._response.close()


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Convert errors of urllib3, without the addresses of objects in their texts."""
    try:
        yield
    except HTTPError as error:
        text = " ".join(str(error).split())
        reason = f"{type(error).__name__}: {text.partition('>: ')[2] or text}"
        if isinstance(error, SSLError):
            raise ssl.SSLError(reason) from error
        if isinstance(error, ReadTimeoutError):
            raise TimeoutError(reason) from error
        raise ConnectionError(reason) from error
