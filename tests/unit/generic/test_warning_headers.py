"""Warnings of the API server: read as RFC 7234 writes them, logged once, bounded."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic.kube.warning_headers import Warnings, read_warnings

HEADERS = {
    "one": ('299 - "unknown field \\"status.foo\\""', ['unknown field "status.foo"']),
    "several in one header": ('299 - "a, b", 299 - "c"', ["a, b", "c"]),
    "with a date": ('299 host:80 "a" "Wed, 21 Oct 2015 07:28:00 GMT", 299 - "b"', ["a", "b"]),
    "a header inside of a text": ('299 - "299 - \\"a\\""', ['299 - "a"']),
    "control characters": ('299 - "a\x1b[31m\tb"', ["a\\u001b[31m b"]),
    "UTF-8": ('299 - "Größe"'.encode().decode("latin-1"), ["Größe"]),
    "not UTF-8": ('299 - "a\xff"', ["a�"]),
    "empty": ("", []),
    "no quotes": ("299 - a", []),
    "not closed": ('299 - "a', []),
    "a backslash at the end": ('299 - "a\\', []),
}


@pytest.mark.parametrize(("header", "texts"), HEADERS.values(), ids=HEADERS)
def test_the_texts_of_a_header_are_read(header, texts):
    assert read_warnings(header) == texts


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "P", "N"]), min_size=1)))
def test_each_text_of_joined_headers_is_read(texts):
    escaped = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    header = ", ".join(f'299 - "{text}"' for text in escaped)
    assert len(header) > 8192 or read_warnings(header) == texts


@pytest.mark.parametrize("part", ['299 - "', "299 ", '299 - "a" ', '299 - "\\', "9" * 9])
def test_a_hostile_header_takes_no_time_and_no_memory(part):
    before = time.process_time()
    texts = read_warnings(part * 100_000)
    assert time.process_time() - before < 1
    assert sum(map(len, texts)) <= 8192


def test_a_warning_is_logged_once_for_all_objects_of_a_kind(caplog):
    warnings = Warnings()
    for namespace in "abc":
        for plural in ("infrastructures", "workers"):
            path = f"/apis/extensions.gardener.cloud/v1alpha1/namespaces/{namespace}/{plural}/x"
            warnings.log(path, '299 - "unknown field"')
    paths = [vars(record)["fields"]["path"] for record in caplog.records]
    assert [path.split("/")[5:7] for path in paths] == [
        ["a", "infrastructures"],
        ["a", "workers"],
    ]


def test_warnings_that_always_differ_fill_no_memory(caplog):
    caplog.set_level("ERROR")
    warnings = Warnings()
    for number in range(2000):
        warnings.log("/api/v1/secrets/x", f'299 - "{number}"')
    assert len(warnings._known) <= 500
