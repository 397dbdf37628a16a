import json
from collections import Counter
from pathlib import Path
from time import process_time

import pytest

from wakeful.loop.promises import find_promise

LABELLED = Path(__file__).resolve().parents[2] / "data" / "promises.jsonl"
ROWS = [json.loads(line) for line in LABELLED.read_text().splitlines()]


def test_the_labelled_sentences_are_many_half_of_them_no_promise_in_four_languages():
    languages = Counter(row["language"] for row in ROWS)
    negatives = sum(not row["is_promise"] for row in ROWS)
    assert len(ROWS) >= 120
    assert 0.4 <= negatives / len(ROWS) <= 0.6
    assert set(languages) == {"en", "de", "fr", "es"}
    assert min(languages.values()) >= 30


def test_a_found_promise_is_nearly_always_one_and_most_promises_are_found():
    found = [row for row in ROWS if find_promise(row["text"]) is not None]
    right = sum(row["is_promise"] for row in found)
    wrong = [row["text"] for row in found if not row["is_promise"]]
    assert right / len(found) >= 0.95, wrong
    assert right / sum(row["is_promise"] for row in ROWS) >= 0.9


@pytest.mark.parametrize("language", ["en", "de", "fr", "es"])
def test_no_language_is_worse_than_nine_in_ten(language):
    rows = [row for row in ROWS if row["language"] == language]
    found = [row["is_promise"] for row in rows if find_promise(row["text"]) is not None]
    assert sum(found) / len(found) >= 0.95
    assert sum(found) / sum(row["is_promise"] for row in rows) >= 0.85


def test_the_sentence_itself_is_returned_out_of_a_long_answer():
    answer = "The build is red.\n\n- I read the log.\n- **I'll check again in 20 minutes.**\n\nAnything else?"
    assert find_promise(answer) == "- **I'll check again in 20 minutes.**"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("```\nI'll check again in 20 minutes.\n```", id="a code block"),
        pytest.param("The template is `I'll check again in 20 minutes`.", id="code"),
        pytest.param("> I'll check again in 20 minutes.", id="a quoted line"),
        pytest.param("The page says “I'll check again in 20 minutes”.", id="quotation marks"),
        pytest.param("I'll check again in 20 minutes if you want.", id="an offer"),
        pytest.param("", id="nothing"),
    ],
)
def test_quotations_code_and_offers_are_no_promises(text):
    assert find_promise(text) is None


@pytest.mark.parametrize(
    "unit", ["I'll ", "i will and ", "je te vous le la ", "te lo la ", "in 20 ", "ich werde ", "`", "„", "every "]
)
def test_a_hostile_text_costs_little(unit):
    began = process_time()
    find_promise(unit * (20_000 // len(unit)))
    find_promise((unit * (500 // len(unit)) + ".\n") * 40)
    assert process_time() - began < 1
