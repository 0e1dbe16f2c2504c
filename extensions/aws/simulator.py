"""A simulated AWS account for rehearsals: moto's server, and its administrator.

It is a simulator, not AWS: moto (https://docs.getmoto.org, "Server mode") keeps the account in
this process's memory, answers with AWS's error codes, checks signatures and the actions of IAM
policies, not their resources and conditions. There is one account in a process, so one simulator
at a time. It has two doors: the extension's, which a rehearsal can shut so that every request
fails at once, and the administrator's. The tests of this extension use it too; the extension
itself never does.
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
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from actuator.meta import Raw
from extensions.aws import simulated_iam
from extensions.aws.cloud import Cloud, Clouds, Service
from extensions.aws.credentials import Credentials

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


class _Door(ThreadedWSGIServer):
    """A free port of the loopback interface, behind which moto answers while it is open."""

    def __init__(self, name: str, answer: Callable[..., Iterable[bytes]]) -> None:
        super().__init__("127.0.0.1", 0, answer, handler=_Quiet)
        self.open = True
        self._thread = threading.Thread(target=self.serve_forever, name=name, daemon=True)

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.server_port}"

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """See socketserver: a shut door drops the connection before it is read."""
        return self.open

    def start(self) -> None:
        """Answers from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answers no more, and the port is free."""
        self.shutdown()
        self._thread.join()
        self.server_close()


class Simulator:
    """moto's server in this process."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()  # moto's account is not made for threads
        self._app = DomainDispatcherApplication(create_backend_app)
        self._door = _Door("simulated-aws", self._answer)
        self._side_door = _Door("simulated-aws-administrator", self._answer)

    @property
    def url(self) -> str:
        """The endpoint for the extension."""
        return self._door.url

    def start(self) -> Account:
        """The administrator of an empty account, in which IAM is enforced from now on."""
        self._door.start()
        self._side_door.start()
        simulated_iam.correct()
        self._control("reset", "")
        self._control("reset-auth", _IGNORE)
        account = Account(self._side_door.url)
        self._control("reset-auth", _ENFORCE)
        return account

    def shut(self) -> None:
        """From now on every request of the extension fails at once; the administrator's do not."""
        self._door.open = False

    def reopen(self) -> None:
        """The extension's requests are answered again."""
        self._door.open = True

    def stop(self) -> None:
        """Ends it; the account is forgotten at the next start in this process."""
        self._control("reset-auth", _IGNORE)
        simulated_iam.undo()
        self._door.stop()
        self._side_door.stop()

    def _answer(self, environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._one_at_a_time:
            answer: Iterable[bytes] = self._app(environ, start_response)
            return answer

    def _control(self, what: str, value: str) -> None:
        """Asks moto's own interface (its documentation, "Reset API" and "IAM-like access")."""
        connection = HTTPConnection("127.0.0.1", self._side_door.server_port, timeout=30)
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
        return self.service("ec2", region)

    def service(self, service: Service, region: str) -> Cloud:
        """A service, with all rights."""
        return self._clouds.open(self.credentials, region, lambda: None, service)

    def create_user(self, name: str, policy: Raw) -> Credentials:
        """The access key of a new IAM user with that policy."""
        self._iam.create_user(UserName=name)
        self.put_policy(name, policy)
        key = self._iam.create_access_key(UserName=name)["AccessKey"]
        return Credentials(key["AccessKeyId"], key["SecretAccessKey"])

    def delete_access_key(self, name: str, credentials: Credentials) -> None:
        """Revokes a user's access key for good."""
        self._iam.delete_access_key(UserName=name, AccessKeyId=credentials.access_key_id)

    def set_access_key(self, name: str, credentials: Credentials, *, active: bool) -> None:
        """Revokes a user's access key, or takes that back."""
        self._iam.update_access_key(
            UserName=name,
            AccessKeyId=credentials.access_key_id,
            Status="Active" if active else "Inactive",
        )

    def put_policy(self, name: str, policy: Raw) -> None:
        """Gives a user the rights of that policy."""
        self._iam.put_user_policy(
            UserName=name, PolicyName=_POLICY, PolicyDocument=json.dumps(policy)
        )

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
