"""Builds the static prompt of an agent from the templates of its language.

The same agent in the same group has the same bytes every time, so that a provider can cache them:
no date, no memory, no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

PERSONAS = ("jobs", "torvalds", "fowler", "rams", "beck")
LANGUAGES = ("en", "zh")


@cache
def load_templates(language: str) -> dict[str, str]:
    """The sections of a language by name."""
    text = (files("reverie_services.engine") / "templates" / f"{language}.md").read_text("utf-8")
    sections = (part.partition("\n") for part in text.removeprefix("# ").split("\n# "))
    return {name.strip(): body.strip() for name, _, body in sections}


def build_static_prompt(
    name: str,
    language: str,
    persona: str,
    mode: str,
    others: Sequence[str],
    tools: Iterable[str],
) -> str:
    """The prompt of an agent. `persona`: one of `PERSONAS`, or a text."""
    templates = load_templates(language)
    persona_text = templates[f"persona-{persona}"] if persona in PERSONAS else persona.strip()
    mode_sections = ["mode-unified"] if mode == "unified" else ["mode-unified", f"mode-{mode}"]
    values = {
        "name": name,
        "others": ", ".join(sorted(others)) or "-",
        "tools": ", ".join(sorted(tools)) or "-",
    }
    names = ["base", "identity", "common-rules", *mode_sections, "tool-guidance", "harness"]
    parts = [_fill(templates[section], values) for section in names]
    return "\n\n".join([*parts, *([persona_text] if persona_text else [])])


def _fill(text: str, values: dict[str, str]) -> str:
    for key, value in values.items():
        text = text.replace("{" + key + "}", value)
    return text
