"""`make lint` finds words of the former dialect in texts, names and tests."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "hack" / "vocabulary.py"
CHECK = runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    "sentence",
    [
        "What holds is listed below.",
        "Stop the manager. Whoever restarts it finds the record.",
        "Nobody else's finalizer is touched.",
        "Everything left outside is on record.",
        "The framework lets go of the object.",
        "The finalizer comes off at the end.",
        "It was set aside after ten seconds.",
        "All left-overs were bypassed by now.",
        "Mend the cloud, and hurry.",
    ],
)
def test_a_planted_sentence_is_found_in_a_page_and_in_a_message(sentence):
    assert list(CHECK["findings"](sentence))
    page = list(CHECK["page_lines"](f"# Title\n\n{sentence}\n"))
    assert (3, sentence) in page
    code = f'def fail():\n    raise ValueError("{sentence}")\n'
    assert (2, sentence) in list(CHECK["code_lines"](code))


@pytest.mark.parametrize(
    "code",
    [
        "def mend_outside(): ...",
        "class BypassedDeletion: ...",
        "def record(let_go): ...",
        "dice = 1",
        "self.leftovers = []",
        "for nobody in (): ...",
    ],
)
def test_a_planted_name_is_found(code):
    [words] = [words for _, words in CHECK["identifier_lines"](code) if words != "record"]
    assert list(CHECK["findings"](words))


def found_in_tests(code: str) -> list[tuple[int, str]]:
    names, docstrings = CHECK["test_name_lines"](code), CHECK["docstring_lines"](code)
    parts = ((names, CHECK["IN_NAMES_OF_TESTS"]), (docstrings, CHECK["IN_TESTS"]))
    findings = CHECK["findings"]
    return [
        (n, word)
        for lines, terms in parts
        for n, line in lines
        for word, _ in findings(line, terms)
    ]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def test_whatever_waits_is_served(): ...", (1, "Whatever")),
        ("def test_whoever_waits_is_served(): ...", (1, "Whoever")),
        ("def test_who_waits_is_served(): ...", (1, "Who")),
        ("def test_what_waits_is_served(): ...", (1, "What")),
        ("def test_where_it_lives_decides(): ...", (1, "Where")),
        ("def test_it_keeps_what_others_wrote(): ...", (1, "what")),
        ("def test_an_error_says_why(): ...", (1, "says why")),
        ("def test_an_error_is_told(): ...", (1, "told")),
        ("def test_a_lease_that_nobody_holds(): ...", (1, "nobody")),
        ('"""Whose change counts."""', (1, "Whose")),
        ('def helper():\n    """Return what helm makes of it."""', (2, "what")),
        ('class _Log:\n    """Lines.\n\n    Somebody writes them.\n    """', (4, "Somebody")),
        ('LIMIT = 1\n"""It is not retried for ever."""', (2, "for ever")),
    ],
)
def test_a_planted_name_or_docstring_of_a_test_is_found(code, found):
    assert found in found_in_tests(code)


def test_a_planted_name_of_a_file_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(CHECK["problems"].__globals__, "ROOT", tmp_path)
    path = tmp_path / "test_vanished_objects.py"
    path.touch()
    [problem] = CHECK["problems"]([path], (CHECK["test_name_lines"], CHECK["IN_TESTS"]))
    assert problem.startswith('test_vanished_objects.py:1: "vanished"')


def test_plain_names_and_docstrings_of_tests_are_not_found():
    code = 'def test_a_user_who_waits_is_served():\n    """Where it waits, `nobody` reads."""\n'
    assert list(CHECK["test_name_lines"](code)) == [(1, "A user who waits is served")]
    assert list(CHECK["docstring_lines"](code)) == [(2, "Where it waits, `nobody` reads.")]
    assert found_in_tests(code) == []


def test_plain_sentences_code_and_private_docstrings_are_not_found():
    for sentence in (
        "The manager removes the finalizer.",
        "Alert `ActuatorFinalizerRemovedExternally` counts `bypassed` objects.",
    ):
        assert list(CHECK["findings"](sentence)) == []
    assert list(CHECK["page_lines"]("```\nnobody\n```\n")) == []
    private = 'def _work():\n    """What nobody reads."""\n'
    assert [text for _, text in CHECK["code_lines"](private) if text] == []


def test_no_checked_text_has_a_refused_term():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)
