"""A simulated AWS account for rehearsals: moto's server, and its administrator.

It is a simulator, not AWS: moto (https://docs.getmoto.org, "Server mode") keeps the account in this
process's memory, returns AWS's error codes, checks signatures and the actions of IAM policies, but
not their resources and conditions. A process has one account, so it runs one simulator at a time.
There are two ports: one for the extension, which a rehearsal can close so that every request fails
at once, and one for the administrator. The tests of this extension use it too; the extension itself
never does.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from moto import settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from actuator import Raw
from extensions.aws import simulated_ec2, simulated_iam, simulated_route53
from extensions.aws.cloud import GLOBAL, Cloud, Clouds, Credentials, Service

_ALLOW_ALL: Raw = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
_POLICY = "rehearsal"


class _Quiet(WSGIRequestHandler):
    """Logs requests only at debug level."""

    def log(self, type: str, message: str, *args: Any) -> None:
        logging.getLogger(__name__).debug(message, *args)


class _MotoServer(ThreadedWSGIServer):
    """A free port of the loopback interface on which moto responds while it is open."""

    def __init__(self, answer: Callable[..., Iterable[bytes]]) -> None:
        super().__init__("127.0.0.1", 0, answer, handler=_Quiet)
        self.open = True

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.server_port}"

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """See socketserver: a closed port drops the connection before it is read."""
        return self.open


class Simulator:
    """moto's server in this process."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()  # moto's account is not thread-safe
        self._app = DomainDispatcherApplication(create_backend_app)
        self._servers: list[_MotoServer] = []
        """That of the extension, and that of the administrator."""

    @property
    def url(self) -> str:
        """The extension's endpoint."""
        return self._servers[0].url

    def start(self) -> "SimulatedAccount":
        """Start an empty account with IAM enforced; return its administrator."""
        self._servers = [_MotoServer(self._answer), _MotoServer(self._answer)]
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        simulated_ec2.correct()
        simulated_iam.correct()
        simulated_route53.correct()
        moto_api_backend.reset()
        _check_credentials_after(inf)
        account = SimulatedAccount(self._servers[1].url)
        _check_credentials_after(0)
        return account

    def shut(self) -> None:
        """Make every request of the extension fail at once; the administrator's still work."""
        self._servers[0].open = False

    def reopen(self) -> None:
        """Accept the extension's requests again."""
        self._servers[0].open = True

    def stop(self) -> None:
        """Stop the servers, if they run; the next start in this process clears the account."""
        _check_credentials_after(inf)
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._servers = []

    def _answer(self, environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._one_at_a_time:
            answer: Iterable[bytes] = self._app(environ, start_response)
            return answer


def _check_credentials_after(requests: float) -> None:
    """Set the number of requests that moto accepts before it checks credentials."""
    settings.INITIAL_NO_AUTH_ACTION_COUNT = requests
    ActionAuthenticatorMixin.request_count = 0


class SimulatedAccount:
    """The administrator of the simulated account, whether IAM is enforced or not."""

    def __init__(self, url: str) -> None:
        self._clouds = Clouds(url)
        self.credentials = Credentials("nobody", "nothing")  # not checked yet
        self.credentials = self.create_user("administrator", _ALLOW_ALL)

    def service(self, service: Service, region: str) -> Cloud:
        """Return a service, with all permissions."""
        return self._clouds.open(self.credentials, region, lambda: None, service)

    def create_user(self, name: str, policy: Raw) -> Credentials:
        """Create an IAM user with that policy; return its access key."""
        self._iam("create_user", UserName=name)
        self.put_policy(name, policy)
        key = self._iam("create_access_key", UserName=name)["AccessKey"]
        return Credentials(key["AccessKeyId"], key["SecretAccessKey"])

    def set_access_key(self, name: str, credentials: Credentials, *, active: bool) -> None:
        """Activate or deactivate a user's access key."""
        status = "Active" if active else "Inactive"
        key = credentials.access_key_id
        self._iam("update_access_key", UserName=name, AccessKeyId=key, Status=status)

    def put_policy(self, name: str, policy: Raw) -> None:
        """Grant a user the permissions of that policy."""
        document = json.dumps(policy)
        self._iam("put_user_policy", UserName=name, PolicyName=_POLICY, PolicyDocument=document)

    def delete_policy(self, name: str) -> None:
        """Revoke a user's permissions; the access key stays valid."""
        self._iam("delete_user_policy", UserName=name, PolicyName=_POLICY)

    def _iam(self, operation: str, **parameters: Any) -> Raw:
        return self.service("iam", GLOBAL).request(operation, **parameters)
