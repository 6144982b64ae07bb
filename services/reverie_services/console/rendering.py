"""Renders templates. All values are escaped, and stored text is never markup."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader

from reverie.domain.core.ids import SHORT_LENGTH
from reverie_services.console.page_request import page_path
from reverie_services.console.requests import HOME

LANGUAGES = {"en": "English", "zh": "中文"}
_WORDS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_MAX_COMPARED = 400
"""Texts of more words are compared by lines, and those of more lines as a whole: the time that a
comparison takes grows with the square."""
# Control characters, and those that turn the direction of a text so that it reads as another one.
_MISLEADING = dict.fromkeys(
    [*{*range(32), 127} - {9, 10, 13}, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"
)


@dataclass(frozen=True)
class DiffPart:
    """A piece of a comparison: `same`, `added` or `removed`."""

    change: str
    text: str


def compare_texts(before: str, after: str) -> list[DiffPart]:
    """The differences of two texts by words, those of long texts by lines."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if max(len(old), len(new)) > _MAX_COMPARED:
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > _MAX_COMPARED:
        old, new = [before], [after]
    return list(_iterate_parts(old, new))


def _iterate_parts(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffPart]:
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield DiffPart("same", "".join(old[i:j]))
            continue
        if j > i:
            yield DiffPart("removed", "".join(old[i:j]))
        if m > k:
            yield DiffPart("added", "".join(new[k:m]))


@cache
def load_catalogue(language: str) -> Mapping[str, str]:
    """The translations of a language, by the English text; English needs none."""
    if language == "en":
        return {}
    text = (files(__package__) / "strings" / f"{language}.json").read_text("utf-8")
    catalogue: dict[str, str] = json.loads(text)
    return catalogue


def create_translator(language: str) -> Callable[..., str]:
    """A function from an English text to that language. Values are inserted at `%(name)s`."""
    catalogue = load_catalogue(language)

    def translate(text: str, **values: object) -> str:
        translated = catalogue.get(text, text)
        return translated % values if values else translated

    return translate


def choose_language(cookie: str | None, accepted: str) -> str:
    """The chosen language, else the first one that the browser accepts."""
    if cookie in LANGUAGES:
        return cookie
    for entry in accepted.lower().split(","):
        language = entry.partition(";")[0].strip()[:2]
        if language in LANGUAGES:
            return language
    return "en"


def show_time(value: Any) -> str:
    """A moment to the minute, in UTC."""
    try:
        return f"{datetime.fromisoformat(str(value)):%Y-%m-%d %H:%M}"
    except ValueError:
        return str(value)


def show_number(value: Any, digits: int = 3) -> str:
    """A number without needless digits; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") or "0"
    return f"{value:,}"


def show_text(value: Any) -> str:
    """A stored text, in which characters that mislead a reader are made visible."""
    return str(value or "").translate(_MISLEADING)


def shorten_text(value: Any, chars: int = 160) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(show_text(value)[: 4 * chars].split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


REASONS = {
    "given": "given",
    "already_given": "given earlier in this conversation",
    "anchor": "it only names a file or an entity",
    "beside": "given as part of another one",
    "budget": "no room within the budget of tokens",
    "confidence": "its confidence is too low",
    "diversity": "too like one that was given",
    "double": "says the same as one that was given",
    "filter": "the filters of the question leave it out",
    "gone meanwhile": "it was removed meanwhile",
    "limit": "others come first",
    "not read in time": "it was not read in time",
    "relevance": "not relevant enough to the question",
    "score": "its score is far below the best",
}
"""Why a candidate was held back, in words."""


def count_delivered(recall: Mapping[str, Any]) -> int:
    """The memories that reached the agent; a preflow gives fewer than its recall returns."""
    given = recall.get("given")
    return int(recall["returned"] if given is None else given)


def pick_field(item: Mapping[str, Any], path: str) -> Any:
    """A field of an item; dots lead into its parts."""
    value: Any = item
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def fill_link(pattern: str, item: Mapping[str, Any]) -> str:
    """The address of a page whose pattern names fields of an item in braces."""
    quoted = re.sub(r"\{(\w+)\}", lambda name: quote(str(item.get(name[1], "")), safe=""), pattern)
    return f"{HOME}/{quoted}"


def fill_id(pattern: str, item: Mapping[str, Any]) -> str:
    """The id of an item for an action, from its fields in braces."""
    return re.sub(r"\{(\w+)\}", lambda name: str(item.get(name[1], "")), pattern)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reverie_services.console"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        time=show_time,
        number=show_number,
        shown=show_text,
        short=shorten_text,
        given=count_delivered,
        pick=pick_field,
        link=fill_link,
        fill=fill_id,
        short_id=lambda value: str(value or "")[-SHORT_LENGTH:],
    )
    environment.globals.update(
        page=page_path, languages=LANGUAGES, compare=compare_texts, reasons=REASONS
    )
    return environment


def render_template(name: str, language: str, values: Mapping[str, Any]) -> str:
    """A page from its template."""
    template = _environment().get_template(name)
    return template.render(values, _=create_translator(language), language=language)
