"""An Obsidian vault: a note per memory with front matter and links, an index per scope. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reverie.domain.ids import short_id
from reverie.domain.memory import Memory
from reverie.domain.segments import readable


@dataclass(frozen=True)
class Link:
    """An open edge from a note to another memory."""

    type: str
    to: Memory


def note_name(memory: Memory) -> str:
    """The name of a note, without its ending: readable, and unique by the id in it."""
    return f"{readable(memory, 60)}-{short_id(memory.id)}"


def render_note(memory: Memory, links: Sequence[Link]) -> str:
    """The text of a note."""
    facts = {
        "id": str(memory.id),
        "kind": memory.kind.value,
        "scope": memory.scope,
        "tags": [re.sub(r"[^\w/-]+", "-", tag) for tag in memory.tags],
        "confidence": memory.confidence,
        "created": memory.created_at.isoformat(),
        "aliases": [memory.key] if memory.key else [],
    }
    # JSON is YAML, and needs no writer of its own.
    front = "\n".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in facts.items())
    return f"---\n{front}\n---\n\n{memory.content.strip()}\n{_links(links)}"


def render_index(scope: str, summary: str | None, memories: Iterable[Memory]) -> str:
    """The index of a scope: its summary, and a link to each of its notes."""
    head = f"# {scope}\n\n" + (f"{summary.strip()}\n\n" if summary else "")
    return head + "".join(f"- [[{note_name(m)}|{_label(m)}]] ({m.kind.value})\n" for m in memories)


def _links(links: Sequence[Link]) -> str:
    if not links:
        return ""
    names: dict[str, list[str]] = {}
    for link in links:
        names.setdefault(link.type, []).append(note_name(link.to))
    groups = (
        f"\n### {kind}\n\n" + "".join(f"- [[{name}]]\n" for name in sorted(names[kind]))
        for kind in sorted(names)
    )
    return "\n## Links\n" + "".join(groups)


def _label(memory: Memory) -> str:
    """What stands for a note in a list: no sign that would end the link."""
    text = memory.key or memory.content.strip().partition("\n")[0][:80]
    return "".join(" " if char in "[]|#^" else char for char in text).strip() or "memory"
