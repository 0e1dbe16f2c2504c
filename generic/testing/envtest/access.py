"""Access to a running embedded cluster, from this process or any other of the same user.

All data is in files below one directory, so a `ClusterAccess` can be created from the directory
and the URL alone.
"""

import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actuator.interface import Client
from generic.kube.client import HttpClient, connect
from generic.kube.kubeconfig import InlineKubeconfig

REQUEST_SECONDS = 10.0


class ClusterAccess:
    """The address of an embedded cluster and the credentials for it."""

    def __init__(self, url: str, directory: Path) -> None:
        self._where = url, directory

    @property
    def url(self) -> str:
        """The API server's address."""
        return self._where[0]

    @property
    def directory(self) -> Path:
        """The folder of all files of the cluster."""
        return self._where[1]

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator (group system:masters), self-contained, mode 0600."""
        return self.directory / "kubeconfig"

    @property
    def ca_file(self) -> Path:
        """The certificate authority of the API server, PEM."""
        return self.directory / "pki" / "ca.crt"

    @property
    def ca_key_file(self) -> Path:
        """The key of the certificate authority, which signs client certificates too."""
        return self.directory / "pki" / "ca.key"

    @property
    def admin_token(self) -> str:
        """The bearer token of the administrator, random for each run."""
        return self.token_file.read_text().partition(",")[0]

    @property
    def token_file(self) -> Path:
        """The API server's static tokens: one line, the administrator's."""
        return self.directory / "pki" / "tokens.csv"

    @property
    def logs(self) -> Path:
        """The folder of the processes' logs."""
        return self.directory / "logs"

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a new kubeconfig for any user; RBAC grants permissions by that name.

        The user authenticates with a client certificate. The API server adds the group
        `system:authenticated`; `system:serviceaccount:<namespace>:<name>` is a valid user too.
        """
        from generic.testing.envtest.certificates import LocalAuthority

        pair = LocalAuthority.load(self.ca_file, self.ca_key_file).client(user, groups)
        prefix = re.sub(r"[^A-Za-z0-9._-]+", "-", user)[:60]
        handle, path = tempfile.mkstemp(
            prefix=f"{prefix}-", suffix=".kubeconfig", dir=self.directory / "users"
        )
        with os.fdopen(handle, "wb") as file:
            file.write(self._kubeconfig(certificate=pair.certificate, key=pair.key))
        return Path(path)

    def write_admin_kubeconfig(self) -> None:
        """Write `kubeconfig`, which must not exist yet."""
        self.kubeconfig.touch(mode=0o600, exist_ok=False)
        self.kubeconfig.write_bytes(self._kubeconfig(token=self.admin_token))

    def connect(self) -> Client:
        """Return a client for the administrator, whose requests take at most 10 seconds."""
        return self._connect()

    def _connect(self) -> HttpClient:
        return connect(self.kubeconfig, connections=1).within(REQUEST_SECONDS)

    def request(self, method: str, path: str, body: object = None) -> bytes:
        """Send one request as the administrator, with JSON if there is a body. Raises ApiError."""
        content = None if body is None else json.dumps(body).encode()
        return self._connect().send(method, path, body=content)

    def _kubeconfig(self, **credential: Any) -> bytes:
        ca = self.ca_file.read_bytes()
        return InlineKubeconfig(self.url, ca, **credential).encoded("envtest")
