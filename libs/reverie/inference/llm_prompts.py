"""Loads the versioned prompt files, and fences untrusted texts as data for a prompt.

A prompt is one file, `<name>.<version>.md`. A change of its text is a new version: rename the
file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?(?:item|data)\b)", re.I)


def fence_items(items: Iterable[tuple[str, str]]) -> str:
    """Each (label, text) as a numbered item, from 1; all of them one block of data."""
    parts = [
        f'<item n="{number}" from="{_clean_label(label)}">\n{_TAG.sub("‹", text)}\n</item>'
        for number, (label, text) in enumerate(items, 1)
    ]
    return "\n".join(("<data>", *parts, "</data>"))


def _clean_label(text: str) -> str:
    return " ".join(re.sub(r"[^\w./-]", " ", text[:60]).split())


@dataclass(frozen=True)
class TaskPrompt:
    """The instructions of one task."""

    name: str
    version: int
    text: str

    @property
    def label(self) -> str:
        """The label recorded with the results: `distil/1`."""
        return f"{self.name}/{self.version}"


@cache
def load_prompts() -> dict[str, TaskPrompt]:
    """Loads all prompts by name. Raises `ValueError` if a name has two versions."""
    loaded: dict[str, TaskPrompt] = {}
    for file in (files("reverie.inference") / "prompts").iterdir():
        name, version, kind = file.name.split(".")
        if kind != "md" or name in loaded:
            raise ValueError(f"{file.name} is not the one version of a prompt")
        loaded[name] = TaskPrompt(name, int(version), file.read_text("utf-8").strip())
    return loaded


def get_prompt(name: str) -> TaskPrompt:
    """The prompt of that name."""
    return load_prompts()[name]
