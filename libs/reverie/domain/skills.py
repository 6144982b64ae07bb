"""Skills: procedures whose ordered steps can be replayed as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ITEM = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*•])\s+(?=\S)")
# Not `${shell}`, `{{template}}` or `{"json": 1}`.
_PLACE = re.compile(r"(?<![${\w])\{([A-Za-z_][A-Za-z0-9_-]{0,63})\}(?!\})")


@dataclass(frozen=True)
class Replay:
    """A procedure ready to follow; `missing` names the places that nothing was given for."""

    title: str
    steps: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def text(self) -> str:
        """The title and the steps, numbered."""
        return with_steps(self.title, self.steps)


def with_steps(title: str, steps: Sequence[str]) -> str:
    """A title and its steps as numbered text."""
    lines = [f"{n}. {step}" for n, step in enumerate(steps, 1)]
    return "\n".join([title, "", *lines] if title else lines)


def procedure(content: str, metadata: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The title and the steps of a skill: those it was given, while its content still says them,
    else the items of a list in it."""
    given = metadata.get("steps")
    steps = tuple(str(one) for one in given) if isinstance(given, list) else ()
    listed = with_steps("", steps)
    if steps and content.endswith(listed):
        return content[: -len(listed)].strip(), steps
    return _read(content)


def _read(content: str) -> tuple[str, tuple[str, ...]]:
    """What stands before the first item, and the items; lines below an item belong to it."""
    title: list[str] = []
    steps: list[str] = []
    for line in content.splitlines():
        if _ITEM.match(line):
            steps.append(_ITEM.sub("", line).rstrip())
        elif steps and line.strip():
            steps[-1] += "\n" + line.rstrip()
        elif not steps:
            title.append(line)
    return "\n".join(title).strip(), tuple(steps)


def places(texts: Sequence[str]) -> tuple[str, ...]:
    """The names in braces, in order, each once."""
    return tuple(dict.fromkeys(name for text in texts for name in _PLACE.findall(text)))


def replay(title: str, steps: Sequence[str], values: Mapping[str, str]) -> Replay:
    """The procedure with its places filled; a value is text and is not filled again."""

    def filled(text: str) -> str:
        return _PLACE.sub(lambda found: values.get(found[1], found[0]), text)

    missing = tuple(name for name in places([title, *steps]) if name not in values)
    return Replay(filled(title), tuple(map(filled, steps)), missing)
