"""Finds promises of later work in an answer: "I'll check again in 20 minutes".

A promise is a sentence in which the agent itself commits to do something at a later time, or to watch something. Offers
("if you want, I can …"), questions, quotations, the past, and the work of others do not count. An overlooked promise
costs nothing; a wrong reminder costs a model call. So a sentence in doubt does not count.

Every pattern starts at the edge of a word and has bounded repeats, so the time is linear in the length.
"""

import re

from wakeful.domain.runs.promise_words import LANGUAGES, Language

MAX_READ = 20_000  # characters of an answer
MAX_SENTENCE = 600  # characters; a longer one is data

CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
QUOTED = re.compile(r'"[^"\n]*"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|‘[^‘’\n]*’(?!\w)')
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
APOSTROPHES = str.maketrans("’ʼ", "''")


def find_promise(text: str) -> str | None:
    """Return the first sentence of an answer that promises later work, or None."""
    said = QUOTED_LINE.sub("", CODE.sub(" ", text[:MAX_READ]))
    for sentence in SENTENCE_END.split(QUOTED.sub(' "" ', said)):
        if len(sentence) > MAX_SENTENCE or sentence.rstrip(' *_)"').endswith("?"):
            continue
        plain = " ".join(sentence.translate(APOSTROPHES).replace("*", "").split())
        if any(_is_promise(plain, language) for language in LANGUAGES):
            return sentence.strip()
    return None


def _is_promise(sentence: str, language: Language) -> bool:
    if language.up_to_user.search(sentence):
        return False
    if any(not _is_denied(each, language) for each in language.watches.finditer(sentence)):
        return True
    return any(
        language.later.search(_up_to_elsewhere(sentence, commit.end(), language))
        for commit in language.commits.finditer(sentence)
        if not _is_denied(commit, language)
    )


def _up_to_elsewhere(sentence: str, start: int, language: Language) -> str:
    other = language.elsewhere.search(sentence, start)
    return sentence if other is None else sentence[: other.start()]


def _is_denied(commitment: re.Match[str], language: Language) -> bool:
    is_before = commitment.groupdict().get("no") is not None
    return is_before or language.denied.match(commitment.string, commitment.end()) is not None
