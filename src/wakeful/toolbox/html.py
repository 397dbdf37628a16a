"""HTML to text for a model: title, headings, lists and links stay, scripts and styles go.

One pass in linear time, whatever the page. The libraries are slower on hostile pages: the standard library's
`html.parser` takes seconds for 24 kB of `<a <a <a …`; selectolax 1.0.2 builds its tree in quadratic time with the GIL
held (10,000 nested <div>: 0.3 s; 20,000: 1.7 s; 40,000: 14 s; this module: 0.02, 0.13 and 0.14 s), and the depth of a
page is not known before it is parsed.
"""

import re
from dataclasses import dataclass
from html import unescape
from urllib.parse import urljoin

MAX_LINK = 2000  # characters
# Possessive quantifiers (`++`, `*+`, `?+`): no backtracking, so a page cannot make them slow.
_TAG_BEGINS = re.compile(r"</?[a-zA-Z]")
_TAG = re.compile(r"""</?([a-zA-Z][^\s/>]*+)((?:[^>"']|"[^"]*+"|'[^']*+')*+)>""")
_LOOSE_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*+)([^>]*+)>")
_ATTRIBUTE = re.compile(r"""([^\s=/>"']++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>]++))?+""")
_SPACE = re.compile(r"\s+")
_NEWLINES = re.compile(r"\n{3,}")
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "textarea", "title"})
_END_OF = {name: re.compile(f"</{name}", re.IGNORECASE) for name in _UNSEEN}
_BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset"),
        *("figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p", "pre", "section"),
        *("summary", "table", "tbody", "tfoot", "thead", "ul"),
    }
)
_LINES = frozenset({"br", "li", "tr", "option"})
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """The title and the text of a page."""

    title: str
    text: str


def read_html(html: str, url: str) -> Readable:
    """Convert a page to text; links become absolute, as [text](address)."""
    reader = _Reader(url)
    reader.read(html)
    return Readable(title=reader.title, text=reader.text())


class _Reader:
    def __init__(self, url: str) -> None:
        self.title = ""
        self._base = url
        self._parts: list[str] = []
        self._pre = 0  # depth of nested <pre>
        self._link: tuple[str, int] | None = None  # its target, and the index of the first part of its text
        self._tag = _TAG

    def text(self) -> str:
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        # A single space is left from a line break in the source; more are deliberate.
        lines = [line[1:] if line.startswith(" ") and not line.startswith("  ") else line for line in lines]
        return _NEWLINES.sub("\n\n", "\n".join(lines)).strip("\n")

    def read(self, html: str) -> None:
        """Read the page. An element that is not closed extends to the end of the page, as in a browser."""
        at = 0
        while at < len(html):
            opening = html.find("<", at)
            self._add_text(html[at : opening if opening >= 0 else len(html)])
            if opening < 0:
                return
            at = self._read_markup(html, opening)

    def _read_markup(self, html: str, at: int) -> int:
        if html.startswith("<!--", at):
            return _after(html, "-->", at + 4)
        if html.startswith(("<!", "<?"), at):
            return _after(html, ">", at)
        if not _TAG_BEGINS.match(html, at):
            self._add_text("<")
            return at + 1
        tag = self._tag.match(html, at)
        if tag is None:
            # A quote that never ends. From here on quotes are ignored, or each tag would search for the end again.
            self._tag = _LOOSE_TAG
            tag = _LOOSE_TAG.match(html, at)
        if tag is None:
            return len(html)
        name = tag[1].lower()
        if html[at + 1] == "/":
            self._end(name)
            return tag.end()
        return self._start(html, name, tag)

    def _start(self, html: str, name: str, tag: re.Match[str]) -> int:
        if name in _UNSEEN and not tag[2].endswith("/"):
            return self._skip(html, name, tag.end())
        if name == "a":
            self._begin_link(_attribute(tag[2], "href"))
        elif name == "base":
            self._base = _join(self._base, _attribute(tag[2], "href")) or self._base
        elif name == "img":
            self._add_text(_attribute(tag[2], "alt"))
        elif name == "pre":
            self._pre += 1
        self._parts.append(_before(name))
        return tag.end()

    def _skip(self, html: str, name: str, at: int) -> int:
        end = _END_OF[name].search(html, at)
        if end is None:
            return len(html)
        if name == "title" and not self.title:
            self.title = _SPACE.sub(" ", _unescape(html[at : end.start()])).strip()[:300]
        return _after(html, ">", end.end())

    def _end(self, name: str) -> None:
        if name == "a":
            self._end_link()
        elif name == "pre":
            self._pre = max(0, self._pre - 1)
        if name in _HEADINGS or name in _BLOCKS:
            self._parts.append("\n\n")
        elif name in {"td", "th"}:
            self._parts.append(" | ")

    def _begin_link(self, href: str) -> None:
        self._end_link()
        target = _join(self._base, href) if href and not href.startswith("#") else None
        if target is not None:
            self._link = (target, len(self._parts))

    def _end_link(self) -> None:
        if self._link is None:
            return
        target, begun = self._link
        self._link = None
        text = _SPACE.sub(" ", "".join(self._parts[begun:]))
        before, after = text.startswith(" ") * " ", text.endswith(" ") * " "
        self._parts[begun:] = [f"{before}[{text.strip()}]({target}){after}"] if text.strip() else []

    def _add_text(self, text: str) -> None:
        if not text:
            return
        text = _unescape(text)
        if not self._pre:
            text = _SPACE.sub(" ", text)
            if text.startswith(" ") and self._parts and self._parts[-1].endswith((" ", "\n")):
                text = text[1:]
        self._parts.append(text)


def _before(name: str) -> str:
    if name in _HEADINGS:
        return "\n\n" + _HEADINGS[name]
    if name in _BLOCKS:
        return "\n\n"
    if name in _LINES:
        return "\n- " if name == "li" else "\n"
    return ""


def _after(html: str, end: str, at: int) -> int:
    found = html.find(end, at)
    return len(html) if found < 0 else found + len(end)


def _attribute(attributes: str, name: str) -> str:
    for found in _ATTRIBUTE.finditer(attributes):
        if found[1].lower() == name and found[2]:
            return _unescape(found[2].strip("\"'")).strip()
    return ""


def _join(base: str, href: str) -> str | None:
    """Make a link absolute; None if it is not a link to a web page."""
    if len(href) > MAX_LINK:
        return None
    try:
        target = urljoin(base, href)
    except ValueError:  # such as http://[
        return None
    return target if target.startswith(("http://", "https://")) and len(target) <= MAX_LINK else None


def _unescape(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # a character number of thousands of digits
        return text
