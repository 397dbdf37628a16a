"""Which texts a search finds, in any language, and what it shows of them."""

import time
import unicodedata

import pytest

from wakeful.core.search import MAX_SEARCHED, fold, make_snippet, parse_query, terms_of


def found(query: str, text: str) -> list[str] | None:
    """Return the parts of a text that match."""
    ranges = parse_query(query).find(text)
    return None if ranges is None else [text[start:end] for start, end in ranges]


@pytest.mark.parametrize(
    ("query", "text", "matches"),
    [
        pytest.param("garden", "The Garden is wet.", ["Garden"], id="case does not matter"),
        pytest.param("wet garden", "The garden is wet.", ["garden", "wet"], id="all words, in any order"),
        pytest.param("dry garden", "The garden is wet.", None, id="a word that is missing"),
        pytest.param("gard", "The garden is wet.", ["gard"], id="the beginning of a word"),
        pytest.param("termin", "Der Zahnarzttermin ist am Montag.", ["termin"], id="a part of a compound"),
        pytest.param('"is wet"', "The garden is, wet.", ["is, wet"], id="a phrase across punctuation"),
        pytest.param('"wet is"', "The garden is wet.", None, id="a phrase in another order"),
        pytest.param('"is wet', "The garden is wet.", ["is wet"], id="a quote that is not closed"),
        pytest.param("“is wet”", "The garden is wet.", ["is wet"], id="curly quotes"),
        pytest.param("foo-bar", "See foo_bar and bar.", ["foo_bar"], id="a word with punctuation is a phrase"),
        pytest.param("ai", "I said: AI.", ["AI"], id="two letters at the beginning of a word"),
        pytest.param("ai", "I said so.", None, id="two letters not in the middle of a word"),
        pytest.param("cafe", "Ein Café.", ["Café"], id="an accent in the text"),
        pytest.param("café", "EIN CAFE\u0301.", ["CAFE\u0301"], id="an accent as a mark of its own"),
        pytest.param("strasse", "Die Straße.", ["Straße"], id="one letter that folds to two"),
        pytest.param("σοφοσ", "ΣΟΦΟΣ, σοφός", ["ΣΟΦΟΣ", "σοφός"], id="Greek"),
        pytest.param("привет", "ПРИВЕТ!", ["ПРИВЕТ"], id="Russian"),
        pytest.param("会议", "明天下午的会议室在三楼。", ["会议"], id="two characters of Chinese"),
        pytest.param("楼", "明天下午的会议室在三楼。", ["楼"], id="one character of Chinese"),
        pytest.param("会室", "明天下午的会议室在三楼。", None, id="Chinese characters that are not together"),
        pytest.param("東京tower", "きのう東京Towerに行った", ["東京Tower"], id="two scripts in one word"),
        pytest.param("to", "きのう東京Towerに行った", ["To"], id="a word after a script without spaces"),
        pytest.param("がく", "だいがく", ["がく"], id="Japanese"),
        pytest.param("かく", "だいがく", None, id="another Japanese letter"),
        pytest.param("ガク", "ﾀﾞｲｶﾞｸ", ["ｶﾞｸ"], id="narrow Japanese letters"),
        pytest.param("회의", "팀회의에서", ["회의"], id="Korean, in the middle"),
        pytest.param("회의", unicodedata.normalize("NFD", "회의"), [unicodedata.normalize("NFD", "회의")], id="jamo"),
        pytest.param("ประชุม", "มีการประชุมพรุ่งนี้", ["ประชุม"], id="Thai"),
        pytest.param("हिन्दी", "यह हिन्दी है", ["हिन्दी"], id="Hindi"),
        pytest.param("سلام", "سَلَام", ["سَلَام"], id="Arabic with vowels"),
        pytest.param("❤", "I ❤️ it", ["❤️"], id="an emoji with a variant"),
        pytest.param("🎉", "Done🎉", ["🎉"], id="an emoji beside a word"),
    ],
)
def test_a_query_finds_its_parts_in_a_text(query, text, matches):
    assert found(query, text) == matches


@pytest.mark.parametrize("query", ["", " ", '"', '""', "...", "-", "' OR 1=1 --", "\x00", "\u202e"])
def test_only_words_are_searched_for(query):
    assert all(word.isalnum() for phrase in parse_query(query).phrases for word in phrase)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("garden", "The Garden"),
        ("termin ist", "Der Zahnarzttermin ist am Montag."),
        ('"东京 天气"', "东京，天气很好"),
        ("会", "开会"),
        ("to", "東京Tower"),
        ("a", "a"),
        ("회의", "팀회의에서"),
        ("strasse", "Straße"),
        ("🎉", "Done🎉"),
        ("ﬁn", "Das Finale"),
    ],
)
def test_a_text_that_matches_has_every_term_of_the_query_in_the_index(query, text):
    asked = parse_query(query)
    assert asked.find(text)
    assert asked.terms
    assert set(asked.terms) <= terms_of(text)


def test_terms_contain_nothing_that_means_something_to_a_database():
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x30000)]))
    for start in range(0, len(everything), 1_000):
        for term in terms_of(everything[start : start + 1_000]):
            assert not set(term) & set("\"'\\:&|!()*<>-^{}\x00"), term
            assert len(term.split()) == 1, term


def test_only_the_beginning_of_a_very_long_text_is_searched():
    text = "x " * (MAX_SEARCHED // 2) + "needle"
    assert found("needle", text) is None
    assert found("needle", "needle " + text) == ["needle"]
    assert len(fold("ﷺ" * MAX_SEARCHED).text) == MAX_SEARCHED  # one character that folds to eighteen


def shown(query: str, text: str) -> tuple[str, list[str]]:
    snippet = make_snippet(text, parse_query(query).find(text) or [])
    return snippet.text, [snippet.text[start:end] for start, end in snippet.matches]


def test_a_short_text_is_shown_whole():
    assert shown("wet", "The garden is wet.") == ("The garden is wet.", ["wet"])


def test_a_snippet_begins_at_a_word_before_the_first_match():
    text, matches = shown("needle", "hay " * 100 + "needle" + " hay" * 100)
    assert text.startswith("…hay hay")
    assert text.endswith("…")
    assert len(text) <= 201
    assert matches == ["needle"]


def test_a_snippet_is_one_line_without_control_characters():
    text, matches = shown("garden", "\n\n# The\x00\x1b[31m  \tGARDEN\r\n\u202eis wet")
    assert text == "# The [31m GARDEN is wet"
    assert matches == ["GARDEN"]


@pytest.mark.parametrize(
    ("query", "markdown", "plain"),
    [
        pytest.param("rain", "## Rain\n\nIt **will** *rain*, `a_b` said.", "Rain It will rain, a_b said.", id="words"),
        pytest.param("tap", "- [x] fix the ~~tap~~\n* and\n> __this__", "fix the tap and this", id="lists"),
        pytest.param("bed", "***one*** _two_ a_b_c 2 * 3 * bed", "one two a_b_c 2 * 3 * bed", id="signs that are none"),
        pytest.param("map", "See [the *map*](https://a.example/b_(c)) ![it](x.png).", "See the map it.", id="links"),
        pytest.param("example", "See [it](https://a.example/b).", "See [it](https://a.example/b).", id="in an address"),
        pytest.param("x", "```python\nx = **y**  # why\n```\n**x**", "x = **y** # why x", id="code stays"),
        pytest.param("kilo", "| plant | kilo |\n|---|--:|\n| *a* | 3 |\n\n---\n", "plant kilo a 3", id="tables"),
        pytest.param("a", r"\*a\* `**` \` <https://a.example>", "*a* ** ` https://a.example", id="escapes"),
        pytest.param('"one two"', "**one** two", "one two", id="across"),
        pytest.param("hay", "**needle hay", "**needle hay", id="not closed"),
    ],
)
def test_a_snippet_of_an_answer_is_plain_text(query, markdown, plain):
    found = parse_query(query).find(markdown)
    assert found is not None
    snippet = make_snippet(markdown, found, is_markdown=True)
    assert snippet.text.strip() == plain
    word = query.strip('"')
    assert {snippet.text[start:end].lower() for start, end in snippet.matches} == {word}
    assert make_snippet(markdown, found).text != plain or plain == markdown


def test_hostile_markup_takes_no_long_time():
    text = " **a ~~b __c `d [e" * 1_500 + " needle"
    found = parse_query("needle").find(text)
    assert found is not None
    began = time.process_time()
    make_snippet(text, found, is_markdown=True)
    assert time.process_time() - began < 1


def test_a_match_at_the_end_of_a_snippet_is_cut_with_it():
    word = "a" * 300
    text, matches = shown(word, word)
    assert text == "a" * 200 + "…"
    assert matches == ["a" * 200]


def test_joined_emoji_stay_joined():
    assert shown("garden", "👩‍🌾 garden") == ("👩‍🌾 garden", ["garden"])
