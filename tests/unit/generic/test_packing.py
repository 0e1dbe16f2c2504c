"""Manifests are packed into Secrets of at most 1 MiB, each exactly once."""

import json
import sys
from random import Random

import brotli
import pytest
import yaml

from actuator.errors import ConfigurationError, ErrorCode
from generic.library.managedresources.packing import COMPRESSED, KEY, LIMIT, packed

FRAME = len(json.dumps({"text": ""})) + len("---\n\n")


def of_size(size):
    return {"text": "x" * (size - FRAME)}


def texts(found):
    return [brotli.decompress(data) if key == COMPRESSED else data for key, data in found]


def documents(found):
    return [json.loads(part) for text in texts(found) for part in text.decode().split("---\n")[1:]]


@pytest.mark.parametrize(
    ("sizes", "secrets"),
    [
        ([], [KEY]),
        ([100, 200], [KEY]),
        ([LIMIT], [KEY]),
        ([LIMIT - 100, 100], [KEY]),
        ([LIMIT - 100, 101], [KEY, KEY]),
        ([400_000] * 3, [KEY, KEY]),
        ([LIMIT + 1], [COMPRESSED]),
        ([100, LIMIT + 1, 100], [KEY, COMPRESSED]),
        ([3 * LIMIT, 2 * LIMIT], [COMPRESSED, COMPRESSED]),
    ],
)
def test_as_few_secrets_as_necessary(sizes, secrets):
    manifests = [of_size(size) for size in sizes]
    found = packed(manifests, "ManagedResource a/b")
    assert [key for key, _ in found] == secrets
    assert sorted(map(str, documents(found))) == sorted(map(str, manifests))


def test_each_manifest_is_in_one_secret_and_no_secret_is_too_large():
    rng = Random(1)
    for _ in range(30):
        manifests = [of_size(rng.choice([50, 5_000, 300_000, 700_000])) for _ in range(9)]
        found = packed(manifests, "ManagedResource a/b")
        assert all(0 < len(data) <= LIMIT for _, data in found)
        assert sorted(map(str, documents(found))) == sorted(map(str, manifests))
        assert found == packed(manifests, "ManagedResource a/b")


def test_the_content_is_yaml():
    [(_, data)] = packed([{"a": 1}, {"b": [2]}], "")
    assert [*yaml.safe_load_all(data)] == [{"a": 1}, {"b": [2]}]


def large():
    noise = Random(2).randbytes(LIMIT).hex()
    meta = {"name": "large", "namespace": "ns"}
    return {"kind": "ConfigMap", "metadata": meta, "data": {"a": noise + noise}}


def test_an_object_that_is_too_large_compressed_is_a_problem_of_the_configuration():
    with pytest.raises(ConfigurationError) as caught:
        packed([large()], "ManagedResource a/b")
    text = str(caught.value)
    assert text.startswith("ManagedResource a/b: ConfigMap ns/large has 4194")
    assert "compressed by the extra `brotli`" in text
    assert str(LIMIT) in text
    assert caught.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


def test_without_the_extra_the_error_names_it_and_smaller_objects_need_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "brotli", None)
    assert len(packed([of_size(700_000)] * 2, "ManagedResource a/b")) == 2
    with pytest.raises(ConfigurationError, match=r"1048577 bytes.*at most 1048576.*\[brotli\]"):
        packed([of_size(LIMIT + 1)], "ManagedResource a/b")
