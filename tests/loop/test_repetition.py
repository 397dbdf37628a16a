from time import process_time

import pytest

from wakeful.loop.repetition import MIN_LENGTH, RepetitionBrake, repeated_unit, without_repeats

SENTENCE = "The weather today is sunny and the weather today is warm. "
PARAGRAPH = "".join(f"Point {number} of the list is about something else. " for number in range(15))


def read(text: str, size: int = 7) -> RepetitionBrake:
    brake = RepetitionBrake()
    for start in range(0, len(text), size):
        brake.read(text[start : start + size])
    return brake


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("I see. " + SENTENCE * 200, id="a sentence"),
        pytest.param("List:\n" + PARAGRAPH * 14, id="a paragraph"),
        pytest.param("Hm" + "\n" * 4_000, id="line breaks"),
        pytest.param("Ha" * 2_500, id="a syllable"),
        pytest.param("好的，我知道了。" * 700, id="Chinese"),
        pytest.param("<tool_call>" * 600, id="a tag"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 4_000])
def test_the_same_text_over_and_over_is_noticed(text, size):
    assert read(text, size).is_on


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("-" * 2_000 + "\nDone.", id="a ruler"),
        pytest.param("".join(f"{number}. Item\n" for number in range(2_000)), id="a numbered list"),
        pytest.param("".join(f"| {number} | 0 | 0 | 0 |\n" for number in range(800)), id="a table"),
        pytest.param(SENTENCE * 20, id="a refrain"),
        pytest.param("".join(f"    x_{number} = {number * number}\n" for number in range(500)), id="code"),
        pytest.param(" ".join(str(number * number % 10_007) for number in range(3_000)), id="numbers"),
        pytest.param("| a | b |\n|---|---|\n" + "| yes | no |\n" * 200, id="200 equal rows"),
    ],
)
def test_text_that_goes_on_is_left_alone(text):
    assert not read(text).is_on


def test_it_is_noticed_soon_after_the_limit():
    brake, read_so_far = RepetitionBrake(), 0
    while not brake.is_on:
        brake.read(SENTENCE)
        read_so_far += len(SENTENCE)
    assert read_so_far < MIN_LENGTH + 600


def test_what_is_kept_says_it_twice():
    assert without_repeats("I see. " + SENTENCE * 200) == "I see. " + (SENTENCE * 2).rstrip() + " …"
    assert without_repeats("Fine.") == "Fine."


def test_a_long_answer_costs_little():
    text = "".join(f"{number:x}, " for number in range(150_000))
    began = process_time()
    assert not read(text, 4).is_on
    assert repeated_unit(text) is None
    assert process_time() - began < 2
