"""Procedures of skill memories: parses their steps, fills in placeholders, renders them as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LIST_ITEM = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*•])\s+(?=\S)")
# Not `${shell}`, `{{template}}` or `{"json": 1}`.
_PLACEHOLDER = re.compile(r"(?<![${\w])\{([A-Za-z_][A-Za-z0-9_-]{0,63})\}(?!\})")


@dataclass(frozen=True)
class ProcedureReplay:
    """A procedure ready to follow; `missing` names the places that nothing was given for."""

    title: str
    steps: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def text(self) -> str:
        """The title and the steps, numbered."""
        return render_steps(self.title, self.steps)


def render_steps(title: str, steps: Sequence[str]) -> str:
    """A title and its steps as numbered text."""
    lines = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    return "\n".join([title, "", *lines] if title else lines)


def parse_procedure(content: str, metadata: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Returns the title and the steps of a skill.

    These are the given steps if the content still contains them, else the items of a list in it.
    """
    stored_steps = metadata.get("steps")
    steps = tuple(str(step) for step in stored_steps) if isinstance(stored_steps, list) else ()
    numbered = render_steps("", steps)
    if steps and content.endswith(numbered):
        return content[: -len(numbered)].strip(), steps
    return _parse_list(content)


def _parse_list(content: str) -> tuple[str, tuple[str, ...]]:
    """Splits a text into the part before the first item, and the items with their lines."""
    title: list[str] = []
    steps: list[str] = []
    for line in content.splitlines():
        if _LIST_ITEM.match(line):
            steps.append(_LIST_ITEM.sub("", line).rstrip())
        elif steps and line.strip():
            steps[-1] += "\n" + line.rstrip()
        elif not steps:
            title.append(line)
    return "\n".join(title).strip(), tuple(steps)


def find_placeholders(texts: Sequence[str]) -> tuple[str, ...]:
    """The names in braces, in order, each once."""
    return tuple(dict.fromkeys(name for text in texts for name in _PLACEHOLDER.findall(text)))


def fill_procedure(title: str, steps: Sequence[str], values: Mapping[str, str]) -> ProcedureReplay:
    """The procedure with its places filled; a value is text and is not filled again."""

    def filled(text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)

    missing = tuple(name for name in find_placeholders([title, *steps]) if name not in values)
    return ProcedureReplay(filled(title), tuple(map(filled, steps)), missing)
