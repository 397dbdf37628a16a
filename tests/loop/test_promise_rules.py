import json
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

import pytest

from wakeful.loop.promises import find_future_time, find_promise

NOON = datetime(2026, 8, 3, 12, 0, tzinfo=UTC)
LABELLED = Path(__file__).resolve().parents[1] / "data" / "promises.jsonl"
ROWS = [json.loads(line) for line in LABELLED.read_text().splitlines()]


def test_a_found_promise_is_nearly_always_one_and_most_promises_are_found():
    rows = [row for row in ROWS if row["language"] == "en"]
    found = [row for row in rows if find_promise(row["text"]) is not None]
    right = sum(row["is_promise"] for row in found)
    wrong = [row["text"] for row in found if not row["is_promise"]]
    assert len(rows) >= 30
    assert right / len(found) >= 0.95, wrong
    assert right / sum(row["is_promise"] for row in rows) >= 0.85


def test_a_sentence_in_another_language_is_no_promise():
    assert not [row["text"] for row in ROWS if row["language"] != "en" and find_promise(row["text"]) is not None]


@pytest.mark.parametrize(
    "text",
    [
        "Alles klar. Ich schaue in 20 Minuten noch einmal nach.",
        "Je vérifierai à nouveau dans 20 minutes.",
        "Volveré a comprobarlo en 20 minutos.",
        "Riproverò tra circa 2 ore.",
        "Ich starte das Backup um 18:00 Uhr.",
        "Je vous écrirai à 14 h 30.",
        "Am 2026-08-04 sende ich die Auswertung.",
    ],
)
def test_a_future_time_is_found_in_other_languages(text):
    assert find_future_time(text, NOON) is not None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Ich habe vor 20 Minuten nachgesehen.", id="a time ago"),
        pytest.param("Der Lauf begann um 09:30 Uhr.", id="a clock time that has passed"),
        pytest.param("Am 2026-08-03 war alles gut.", id="today"),
        pytest.param("Soll ich in 20 Minuten nachsehen?", id="a question"),
        pytest.param("„Ich melde mich in 20 Minuten.“", id="a quotation"),
        pytest.param("Ich melde mich morgen.", id="a word for a time"),
        pytest.param("The train leaves at 14:30.", id="English, where the words decide"),
        pytest.param("In 20 Dateien stand nichts.", id="a number that is no time"),
    ],
)
def test_a_past_time_and_an_english_sentence_are_no_future_time(text):
    assert find_future_time(text, NOON) is None


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
    find_future_time((unit * (500 // len(unit)) + ".\n") * 40, NOON)
    assert process_time() - began < 1
