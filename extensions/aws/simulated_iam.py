"""Correct how moto checks credentials, for `simulator`.

- For a request to Route 53 without a body, moto hashes its query or its headers instead, so that
  every signature is wrong; and it formats a refusal differently from AWS.
- moto accepts an inactive access key; AWS does not (IAM user guide, "Managing access keys").
- moto requires a signature for AssumeRoleWithWebIdentity; AWS checks the token in place of it, and
  moto does not.
"""

from types import SimpleNamespace
from typing import Any
from xml.sax.saxutils import escape

from moto.iam import access_control
from moto.iam.models import iam_backends
from werkzeug.exceptions import Forbidden

_create_access_key = access_control.create_access_key
_MOTO: Any = access_control


class _CheckedRequest(access_control.IAMRequest):
    """A request whose credentials are checked."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        if self._service == "route53":
            self._data = {}

    def _raise_signature_does_not_match(self) -> None:
        self._refuse_route53("SignatureDoesNotMatch")
        super()._raise_signature_does_not_match()

    def _raise_invalid_access_key(self, reason: str) -> None:
        self._refuse_route53("InvalidClientTokenId")
        super()._raise_invalid_access_key(reason)

    def _raise_access_denied(self) -> None:
        self._refuse_route53("AccessDenied")
        super()._raise_access_denied()

    def _refuse_route53(self, code: str) -> None:
        if self._service == "route53":
            message = escape(f"The request {self._action} is refused.")
            raise Forbidden(
                f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code>"
                f"<Message>{message}</Message></Error></ErrorResponse>"
            )


def _request(**given: Any) -> Any:
    if given["action"] == "AssumeRoleWithWebIdentity":
        return SimpleNamespace(check_signature=bool, check_action_permitted=bool)  # accept it
    return _CheckedRequest(**given)


def _active_key(account_id: str, partition: str, access_key_id: str, headers: Any) -> Any:
    known = iam_backends[account_id][partition].access_keys.get(access_key_id)
    if known is not None and known.status != "Active":
        raise access_control.CreateAccessKeyFailure(reason="InvalidId")
    return _create_access_key(account_id, partition, access_key_id, headers)


def correct() -> None:
    """Check credentials like AWS from now on, in this process."""
    _MOTO.IAMRequest = _request
    _MOTO.create_access_key = _active_key
