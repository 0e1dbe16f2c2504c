"""Credentials: texts in a Secret. No message and no exception contains one of them.

Not here: the Secret of a workload identity (`generic.library.workload_identity`).
"""

import base64
from collections.abc import Callable, Sequence

from actuator.errors import ConfigurationError, NotFound
from actuator.meta import CredentialsReference, Object, Raw, credentials_of
from generic.kube.workload_identity import is_workload_identity


def read_texts(
    read: Callable[[str, str], Raw], of: Object | CredentialsReference, keys: Sequence[str]
) -> tuple[str, ...]:
    """Return the texts of these data keys; `read` is `Context.secret`.

    Raises ConfigurationError, which names all wrong keys, and ApiError.
    """
    ref = credentials_of(of) if isinstance(of, Object) else of
    kind = getattr(ref, "kind", ref.extra.get("kind")) or "Secret"
    where = f"{kind} {ref.namespace}/{ref.name}"
    if kind != "Secret":
        raise ConfigurationError(f"{where}: no Secret, so without data keys; refer to a Secret")
    for field in ("name", "namespace"):  # without a name, a GET is a LIST
        if not getattr(ref, field):
            raise ConfigurationError(f"{where}: the reference has no {field}; set it")
    try:
        secret = read(ref.name, ref.namespace)
    except NotFound as error:
        wanted = " and ".join(keys)
        raise ConfigurationError(f"{where} not found; create it with data key {wanted}") from error
    data = secret.get("data") or {}
    found = {key: _read(data.get(key)) for key in keys}
    problems = [f"data key {key}: {problem}" for key, (_, problem) in found.items() if problem]
    if problems:
        identity = " holds the token of a WorkloadIdentity" if is_workload_identity(secret) else ""
        raise ConfigurationError(f"{where}{identity}: {'; '.join(problems)}")
    return tuple(found[key][0] for key in keys)


def _read(value: object) -> tuple[str, str]:
    """Return a text and its problem, one of them empty. A decoding error would quote its input."""
    if not isinstance(value, str):
        return "", "not found; add it"
    try:
        content = base64.b64decode(value, validate=True)
    except ValueError:
        return "", "no base64; encode it"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "", "no UTF-8 text; write it as text"
    if not text.strip():
        return "", "empty; set it"
    is_document = "\n" in text.strip() or text.startswith("{")  # these may end with a newline
    if is_document or (text.isprintable() and text == text.strip()):
        return text, ""
    return "", "spaces, a newline or control characters around or in the text; write it without"
