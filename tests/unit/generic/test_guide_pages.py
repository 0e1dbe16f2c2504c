"""docs/credentials.md and docs/own-rules.md: they work in the project of the tutorial.

The drill of a page is one that the test of the tutorial executes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from actuator import ActuatorError, Base64, Cluster, ErrorCode, ObjectMeta, Raw, SecretReference
from actuator.meta import CredentialsReference
from actuator.v1alpha1 import Extension, ObjectReference
from generic.library.manifests import manifest
from generic.testing.recording import RecordingContext
from tests.support.objects.workload_identities import identity_secret
from tests.support.pages.documented import ROOT, files_of, run_examples

NAMESPACE = "shoot--a--b"
REFERENCE = SecretReference(name="cloudprovider", namespace=NAMESPACE)
ROW = re.compile(r"^\| (.+?) \| `(?:… )?(.+)` \|$", re.MULTILINE)
SECONDS = 120.0
"""Time limit of pytest; only a failure reaches it."""


def text_of(page: str) -> str:
    return (ROOT / "docs" / page).read_text()


def commands_of(page: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)
    return "".join(blocks).splitlines()


@pytest.mark.parametrize("page", ["credentials.md", "own-rules.md"])
def test_the_files_and_commands_of_a_page_work(page, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name, text in (files_of("tutorial.md") | files_of(page)).items():
        Path(name).write_text(text)
    lines = commands_of(page)
    assert len(lines) > 1
    for line in lines:
        program, *arguments = line.split()
        if program == "pytest":
            words = [sys.executable, "-m", program, "-q", "-p", "no:cacheprovider", *arguments]
            done = subprocess.run(
                words, check=False, capture_output=True, text=True, timeout=SECONDS
            )
            assert done.returncode == 0, done.stdout[-3000:]
        elif arguments[0] == "drill":
            assert line in commands_of("tutorial.md")
        else:
            command(*arguments)


def secret(**data: str) -> Raw:
    return manifest("v1", "Secret", "cloudprovider", NAMESPACE, data=data)


def encoded(content: bytes) -> str:
    return Base64.encode_bytes(content)


WRONG: dict[str, tuple[CredentialsReference, Raw | None]] = {
    "no Secret": (REFERENCE, None),
    "no such key, or a null": (REFERENCE, secret(other="YQ==")),
    "an empty text": (REFERENCE, secret(apiKey="")),
    r"a newline of `echo KEY \| base64`, a space, a control character": (
        REFERENCE,
        secret(apiKey=encoded(b"a\n")),
    ),
    "no base64": (REFERENCE, secret(apiKey="a")),
    "bytes that are no UTF-8": (REFERENCE, secret(apiKey=encoded(b"\xff"))),
    "the token of a WorkloadIdentity": (REFERENCE, identity_secret(NAMESPACE, "a")),
    "a reference to a WorkloadIdentity": (
        ObjectReference(kind="WorkloadIdentity", name="robot", namespace=NAMESPACE),
        None,
    ),
    "a reference without a namespace": (SecretReference(name="cloudprovider"), None),
}
"""Each row of the table, as a reference and the Secret to which it refers."""


def messages() -> dict[str, str]:
    """The rows of the table of wrong Secrets: the end of each message."""
    _, _, section = text_of("credentials.md").partition("\n## Wrong Secrets\n")
    return dict(ROW.findall(section.partition("\n## ")[0]))


def test_the_table_has_each_wrong_secret():
    assert messages().keys() == WRONG.keys()


@pytest.mark.parametrize("row", WRONG)
def test_the_message_of_a_wrong_secret_is_that_of_the_table(row):
    reference, given = WRONG[row]
    ctx = RecordingContext(*[given] if given else [])
    with pytest.raises(ActuatorError) as error:
        ctx.credentials(reference, "apiKey")
    message = messages()[row]
    if message.startswith("data key"):
        message = f"Secret {NAMESPACE}/cloudprovider: {message}"
    assert str(error.value) == message
    assert error.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


def test_an_extension_of_a_kind_without_a_reference_reads_the_secret_of_the_shoot():
    defined = run_examples("## Read texts", "credentials.md")
    ctx = RecordingContext(secret(apiKey=encoded(b"key")))
    obj = Extension(metadata=ObjectMeta(name="mirror", namespace=NAMESPACE))
    defined["Mirror"]().reconcile(ctx, obj, Cluster())
    assert ctx.steps == [f"get secrets {NAMESPACE}/cloudprovider"]


def test_the_table_of_codes_names_those_that_permit_a_force_deletion():
    _, _, section = text_of("credentials.md").partition("\n## Revoked credentials\n")
    named = re.findall(r"`(ERR_\w+)`", section.partition("\n## ")[0])
    assert len(named) == 3
    assert all(ErrorCode(name).allows_force_deletion for name in named)
