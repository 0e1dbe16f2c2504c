"""`make lint` finds words of the former dialect in what a user reads."""

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


def test_plain_sentences_code_and_private_docstrings_are_not_found():
    for sentence in (
        "The manager removes the finalizer.",
        "Alert `ActuatorDeletionBypassed` counts `bypassed` objects.",
    ):
        assert list(CHECK["findings"](sentence)) == []
    assert list(CHECK["page_lines"]("```\nnobody\n```\n")) == []
    private = 'def _work():\n    """What nobody reads."""\n'
    assert [text for _, text in CHECK["code_lines"](private) if text] == []


def test_no_text_for_users_has_such_a_word():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)
