"""A simulated AWS account for rehearsals: moto's server in a thread, and its administrator.

It is a simulator, not AWS: moto (https://docs.getmoto.org, "Server mode") keeps the account in
this process's memory, answers with AWS's error codes, checks signatures and the actions of IAM
policies, not their resources and conditions. There is one account in a process, so one simulator
at a time. The tests of this extension use it too; the extension itself never does.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable
from http.client import HTTPConnection
from typing import Any

from boto3.session import Session
from botocore.config import Config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from actuator.meta import Raw
from extensions.aws.cloud import Cloud, Clouds
from extensions.aws.credentials import Credentials

__all__ = ["Account", "Simulator"]

_ALLOW_ALL: Raw = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
_POLICY = "rehearsal"
_ENFORCE, _IGNORE = "0", "inf"
"""How many requests moto answers before it looks at credentials."""


class _Quiet(WSGIRequestHandler):
    """Says nothing about requests."""

    def log(self, type: str, message: str, *args: Any) -> None:
        """See WSGIRequestHandler."""
        logging.getLogger(__name__).debug(message, *args)


class Simulator:
    """moto's server on a free port of the loopback interface."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()  # moto's account is not made for threads
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server: BaseWSGIServer = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="simulated-aws", daemon=True
        )

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> Account:
        """The administrator of an empty account, in which IAM is enforced from now on."""
        self._thread.start()
        self._control("reset", "")
        self._control("reset-auth", _IGNORE)
        account = Account(self.url)
        self._control("reset-auth", _ENFORCE)
        return account

    def stop(self) -> None:
        """Ends it; the account is forgotten at the next start in this process."""
        self._control("reset-auth", _IGNORE)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._one_at_a_time:
            answer: Iterable[bytes] = self._app(environ, start_response)
            return answer

    def _control(self, what: str, value: str) -> None:
        """Asks moto's own interface (its documentation, "Reset API" and "IAM-like access")."""
        connection = HTTPConnection("127.0.0.1", self._server.server_port, timeout=30)
        try:
            headers = {"Content-Type": "text/plain"}
            connection.request("POST", f"/moto-api/{what}", value.encode(), headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise RuntimeError(f"moto refused {what}: {answer.status} {answer.read()[:200]!r}")
        finally:
            connection.close()


class Account:
    """What the administrator of the simulated account can do, IAM being enforced or not."""

    def __init__(self, url: str) -> None:
        self._url = url
        # until enforcement begins, moto takes any credentials
        self._iam = self._iam_client(Credentials("nobody", "nothing"))
        self.credentials = self.create_user("administrator", _ALLOW_ALL)
        self._iam = self._iam_client(self.credentials)
        self._clouds = Clouds(url)

    def ec2(self, region: str) -> Cloud:
        """EC2, with all rights."""
        return self._clouds.open(self.credentials, region, lambda: None)

    def create_user(self, name: str, policy: Raw) -> Credentials:
        """The access key of a new IAM user with that policy."""
        self._iam.create_user(UserName=name)
        self._iam.put_user_policy(
            UserName=name, PolicyName=_POLICY, PolicyDocument=json.dumps(policy)
        )
        key = self._iam.create_access_key(UserName=name)["AccessKey"]
        return Credentials(key["AccessKeyId"], key["SecretAccessKey"])

    def delete_access_key(self, name: str, credentials: Credentials) -> None:
        """Revokes a user's access key."""
        self._iam.delete_access_key(UserName=name, AccessKeyId=credentials.access_key_id)

    def delete_policy(self, name: str) -> None:
        """Takes a user's rights, and leaves the access key valid."""
        self._iam.delete_user_policy(UserName=name, PolicyName=_POLICY)

    def _iam_client(self, credentials: Credentials) -> Any:
        return Session().client(  # type: ignore[no-untyped-call]
            "iam",
            region_name="us-east-1",
            endpoint_url=self._url,
            aws_access_key_id=credentials.access_key_id,
            aws_secret_access_key=credentials.secret_access_key,
            config=Config(proxies={}),  # type: ignore[no-untyped-call]
        )
