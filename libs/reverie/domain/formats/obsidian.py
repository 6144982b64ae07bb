"""Rendering of memories as an Obsidian vault: a note per memory with links, an index per scope."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reverie.domain.core.ids import short_id
from reverie.domain.core.memory import Memory
from reverie.domain.formats.memory_md import build_readable_name


@dataclass(frozen=True)
class NoteLink:
    """An open edge from a note to another memory."""

    type: str
    target: Memory


def build_note_name(memory: Memory) -> str:
    """Builds the name of a note, without its ending: readable, and unique by its id."""
    return f"{build_readable_name(memory, 60)}-{short_id(memory.id)}"


def render_note(memory: Memory, links: Sequence[NoteLink]) -> str:
    """Renders a note."""
    properties = {
        "id": str(memory.id),
        "kind": memory.kind.value,
        "scope": memory.scope,
        "tags": [re.sub(r"[^\w/-]+", "-", tag) for tag in memory.tags],
        "confidence": memory.confidence,
        "created": memory.created_at.isoformat(),
        "aliases": [memory.key] if memory.key else [],
    }
    # JSON is YAML, and needs no writer of its own.
    front = "\n".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in properties.items())
    names: dict[str, list[str]] = {}
    for link in sorted(links, key=lambda link: link.type):
        names.setdefault(link.type, []).append(build_note_name(link.target))
    groups = (
        f"\n### {kind}\n\n" + "".join(f"- [[{name}]]\n" for name in sorted(notes))
        for kind, notes in names.items()
    )
    link_list = "\n## Links\n" + "".join(groups) if links else ""
    return f"---\n{front}\n---\n\n{memory.content.strip()}\n{link_list}"


def render_scope_index(scope: str, summary: str | None, memories: Iterable[Memory]) -> str:
    """Renders the index of a scope: its summary, and a link to each of its notes."""
    head = f"# {scope}\n\n" + (f"{summary.strip()}\n\n" if summary else "")
    return head + "".join(
        f"- [[{build_note_name(m)}|{_build_label(m)}]] ({m.kind.value})\n" for m in memories
    )


def _build_label(memory: Memory) -> str:
    """Builds the label of a note in a list, without characters that would end the link."""
    text = memory.key or memory.content.strip().partition("\n")[0][:80]
    return "".join(" " if char in "[]|#^" else char for char in text).strip() or "memory"
