"""Finds promises of later work in an answer: "I'll check again in 20 minutes".

A promise is an English sentence in which the agent itself commits to do something at a later time, or to watch
something. Offers ("if you want, I can …"), questions, quotations, the past, and the work of others do not count. An
overlooked promise costs nothing; a wrong reminder costs a model call. So a sentence in doubt does not count.

In other languages only a future time is looked for: the model says whether it meant to do something then.

Every pattern starts at the edge of a word and has bounded repeats, so the time is linear in the length.
"""

import re
from collections.abc import Iterator
from datetime import datetime

MAX_READ = 20_000  # characters of an answer
MAX_SENTENCE = 600  # characters; a longer one is data

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_QUOTED = re.compile(r'"[^"\n]*"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|‘[^‘’\n]*’(?!\w)')
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_APOSTROPHES = str.maketrans("’ʼ", "''")


def find_promise(text: str) -> str | None:
    """Return the first English sentence of an answer that promises later work, or None."""
    return next((sentence for sentence, plain in _sentences(text) if _is_promise(plain)), None)


def find_future_time(text: str, now: datetime) -> str | None:
    """Return the first sentence in another language that names a time after now, or None. `now` is in the user's zone.

    The time is "in 20 Minuten", a clock time that is still ahead today, or a date.
    """
    others = ((sentence, plain) for sentence, plain in _sentences(text) if not _ENGLISH.search(plain))
    return next((sentence for sentence, plain in others if _names_future_time(plain, now)), None)


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield each sentence that is no question and has no code, also without emphasis and with single blanks."""
    said = _QUOTED_LINE.sub("", _CODE.sub(" ", text[:MAX_READ]))
    for sentence in _SENTENCE_END.split(_QUOTED.sub(' "" ', said)):
        if len(sentence) <= MAX_SENTENCE and not sentence.rstrip(' *_)"').endswith("?"):
            yield sentence.strip(), " ".join(sentence.translate(_APOSTROPHES).replace("*", "").split())


def _is_promise(sentence: str) -> bool:
    if _UP_TO_USER.search(sentence):
        return False
    if any(not _is_denied(each) for each in _WATCHES.finditer(sentence)):
        return True
    return any(
        _LATER.search(_up_to_elsewhere(sentence, commit.end()))
        for commit in _COMMITS.finditer(sentence)
        if not _is_denied(commit)
    )


def _up_to_elsewhere(sentence: str, start: int) -> str:
    other = _ELSEWHERE.search(sentence, start)
    return sentence if other is None else sentence[: other.start()]


def _is_denied(commitment: re.Match[str]) -> bool:
    return _DENIED.match(commitment.string, commitment.end()) is not None


def _names_future_time(sentence: str, now: datetime) -> bool:
    if _DURATION.search(sentence):
        return True
    if dates := _DATE.findall(sentence):
        return any(date > f"{now:%Y-%m-%d}" for date in dates)
    return any((int(hour), int(minute)) > (now.hour, now.minute) for hour, minute in _CLOCK.findall(sentence))


def _either(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


def _any(words: str) -> str:
    return _either(*words.split())


def _whole(*patterns: str) -> re.Pattern[str]:
    """Match one of the patterns at the edges of words."""
    return re.compile(rf"(?<![\w']){_either(*patterns)}(?!\w)", re.IGNORECASE)


def _part(*patterns: str) -> re.Pattern[str]:
    return re.compile(_either(*patterns), re.IGNORECASE)


_WILL = r"(?:i|we)(?:'ll| will| shall|'m going to| am going to|'re going to| are going to)"
_UNIT = _any("second minute min hour day night morning afternoon evening week weekend weekday month") + "s?"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_A_FEW = r"(?:\d+|an?|half an?|a few|a couple of|some|[a-z]{3,8})"
# Work on data for another time, or no work: "I'll add the meeting on Monday to the table".
_NOW = _any(
    "assume explain describe show leave be have need see treat call use add insert enter save note record mark list "
    "put include summari[sz]e convert bed"
)
_TELL = r"(?:let you know|(?:notify|ping|alert|update|message|inform) you)"
_BOOKED = r"(?:a|an|the|your) (?:[a-z]+ )?" + _any("reminder recall alarm timer check-?in wake-?up follow-?up")
# "I will …": the agent says what it is going to do.
_COMMITS = _whole(
    rf"(?:{_WILL}|^will)(?! (?:(?:now|then|also|just|simply) )?{_NOW}\b)",
    r"(?:i|we) (?:plan|intend) to",
    r"let me (?:check|look|try|come) (?:back|again)",
)
# A time after this run.
_LATER = re.compile(
    r"(?<![\w'])(?<!for )(?<!until )(?<!of )(?<!from )"
    + _either(
        rf"in (?:(?:about|around|roughly|another|the) )?{_A_FEW} {_UNIT}",
        r"later|shortly|overnight|tomorrow(?!'s)|tonight(?!'s)|this (?:evening|afternoon)(?!'s)",
        rf"next (?:{_UNIT}|{_DAY}|run|time)",
        rf"on {_DAY}s?",
        r"(?:at|around|before|by) (?:noon|midnight|\d{1,2}(?::\d\d)?(?: ?[ap]\.?m\.?)?)",
        rf"(?:every|each) (?:(?:\d+|two|three|few|other|couple of|half) )?(?:{_UNIT}|{_DAY})",
        r"hourly|daily|regularly|periodically|from now on",
        r"as soon as|once (?:the|it|they|this|that|all|there)",
        r"after (?:lunch|dinner|breakfast|work|midnight|the weekend)",
        rf"wait (?:for )?{_A_FEW} {_UNIT}",
    )
    + r"(?!\w)",
    re.IGNORECASE,
)
# A commitment that lasts beyond this run by itself: "I'll keep an eye on it".
_WATCHES = _whole(
    rf"{_WILL} (?:(?:also|then|now|of course|continue to|be sure to|make sure to) )?"
    + _either(
        r"keep (?:an eye|monitoring|watching|checking|you (?:posted|updated|informed))",
        r"be (?:watching|monitoring|back)",
        r"monitor|watch (?:the|it|for|this)|stay on it|remind you",
        r"(?:follow|pick this) up|report back|get back to you|come back to|circle back|check back",
        rf"(?:[^,;]{{1,60}} and (?:then )?)?{_TELL} (?:when|if|once|as soon as|whenever)",
        rf"(?:set|schedule|book|create) {_BOOKED}",
    ),
    rf"i(?:'m| am) (?:setting|scheduling|booking) (?:myself )?{_BOOKED}",
)
# An offer, or a condition that the person decides.
_UP_TO_USER = _whole(
    r"(?:if|once|when|whenever|as soon as|after|should|unless|until|in case) you",
    r"(?:let me know|tell me|remind me|ask me|send me|ping me|say so|say the word)",
    r"would you like|do you want|shall i|if (?:necessary|needed|wanted|desired|that)",
    r"you (?:said|say|asked|told|wrote)|says?|said|wrote|writes",
)
# Right after a commitment.
_DENIED = _part(r" (?:not|never|no longer)\b")
# From here on, a time is not that of the commitment: "so that you can go back later".
_ELSEWHERE = _part(
    r": ",
    r"\b(?:make|create|prepare|draft|write|build|generate) [^,;]{1,60} for ",
    r" (?:so that|so you|what|whether|which|who|how|that|because|for you|you can) ",
)

_ENGLISH = _whole(_any("the is it to you i'll i will of at and this that"))
# "in 20 Minuten": the word before the number tells the future from the past.
_DURATION = re.compile(
    rf"(?<!\w){_any('in dans en em om tra za через')} (?:\w{{1,12}} )?\d{{1,3}} ?"
    + _either(r"h(?!\w)", r"(?:se[ckg]|min|мин|heu|hor|ho[du]|stu|ore|uur|tag|jou|d[ií]a|dag|час)\w{0,8}"),
    re.IGNORECASE,
)
_DATE = re.compile(r"(?<![\w-])\d{4}-\d\d-\d\d(?!\d)")
_CLOCK = re.compile(r"(?<![\w:.-])([01]?\d|2[0-3])(?::| ?h ?)([0-5]\d)(?![\w:])")
