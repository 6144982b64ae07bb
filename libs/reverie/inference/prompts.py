"""Prompts: a file each, `<name>.<version>.md`. What a prompt made names its version.

A change of a text is a new version: rename the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Prompt:
    """The instructions of one task."""

    name: str
    version: int
    text: str

    @property
    def label(self) -> str:
        """As it is recorded beside what it made: `distil/1`."""
        return f"{self.name}/{self.version}"


@cache
def prompts() -> dict[str, Prompt]:
    """All prompts by name. Raises `ValueError` where a name has two versions."""
    found: dict[str, Prompt] = {}
    for file in (files("reverie.inference") / "prompts").iterdir():
        name, version, kind = file.name.split(".")
        if kind != "md" or name in found:
            raise ValueError(f"{file.name} is not the one version of a prompt")
        found[name] = Prompt(name, int(version), file.read_text("utf-8").strip())
    return found


def prompt(name: str) -> Prompt:
    """The prompt of that name."""
    return prompts()[name]
