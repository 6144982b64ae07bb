"""The catalogue of strings: each text of the console has its Chinese, and nothing is left over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import get_args

from reverie.contracts.dreams import UndigestedScope
from reverie.contracts.memories.git import FileStatus, ReviewBody
from reverie.contracts.problems import PROBLEM_TITLES
from reverie.domain.access.principals import KeyRole
from reverie.domain.core.memory import MemoryStatus
from reverie.domain.staleness.grading import StaleGrade
from reverie_services.console.actions import ACTIONS
from reverie_services.console.pages import PAGES
from reverie_services.console.pages.lists import LISTS
from reverie_services.console.pages.overview import ATTENTION
from reverie_services.console.rendering import REASONS, load_catalogue
from reverie_services.console.sign_in import FAILURES

TEMPLATES = files("reverie_services.console") / "templates"
CALL = re.compile(r'\b(?:_|t)\("([^"]+)"')
ACT = re.compile(r'm\.act\(_, visit, (?:[^,]+), (?:[^,]+), "([^"]+)"(?: if [^,]+ else "([^"]+)")?')
INPUT = re.compile(r'm\.input\(_, "[^"]*", "([^"]+)"')
VALUES = re.compile(r'\{\{ values\("([^"]+)"')


def texts_of_templates() -> Iterator[str]:
    """The texts that templates translate."""
    for template in TEMPLATES.iterdir():
        source = template.read_text("utf-8")
        for pattern in (CALL, ACT, INPUT, VALUES):
            for match in pattern.finditer(source):
                yield from filter(None, match.groups())


def texts_of_tables() -> Iterator[str]:
    """The texts of actions, pages and lists."""
    for action in ACTIONS.values():
        yield from filter(None, (action.title, action.effect, action.done))
        yield from (field.label for field in action.fields)
    for section in PAGES.sections:
        yield from filter(None, (section.title, section.group))
    for spec in LISTS:
        yield spec.about
        yield from (column.label for column in spec.columns)
        yield from (each.label for each in spec.filters)
    yield from ATTENTION
    yield from REASONS.values()
    yield from FAILURES


def texts_of_values() -> Iterator[str]:
    """The values of fields that pages show in words."""
    yield from PROBLEM_TITLES.values()
    for words in (MemoryStatus, StaleGrade, KeyRole):
        yield from (word.value for word in words)
    for model, field in (
        (UndigestedScope, "state"),
        (ReviewBody, "verdict"),
        (ReviewBody, "state"),
    ):
        yield from get_args(model.model_fields[field].annotation)
    yield from get_args(FileStatus)


def test_every_text_has_its_chinese() -> None:
    texts = {*texts_of_templates(), *texts_of_tables(), *texts_of_values()}
    assert len(texts) > 200
    assert sorted(texts - load_catalogue("zh").keys()) == []


def test_translations_take_the_same_values() -> None:
    values = re.compile(r"%\(\w+\)s")
    catalogue = load_catalogue("zh")
    assert {
        text
        for text, chinese in catalogue.items()
        if values.findall(text) != values.findall(chinese)
    } == set()
