"""When a memory becomes a convention: the evidence for it, and the words for the reason. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.domain.edges import EdgeKind
from reverie.domain.ids import new_id
from reverie.domain.kinds import TREATMENT, Kind
from reverie.domain.memory import Memory, NewEdge, NewMemory
from reverie.domain.words import index_text

PROMOTED = (Kind.CONTEXT, Kind.DECISION, Kind.LESSON, Kind.PREFERENCE, Kind.SPEC)
"""Kinds whose memories may become conventions: the others are records, not rules."""

AGENT_FILES = (
    "agents.md",
    "claude.md",
    "gemini.md",
    "copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "conventions.md",
)
"""Names, in lower case, of files that tell agents the rules of a repository."""


@dataclass(frozen=True)
class Evidence:
    """How often a memory was said, in how many sessions, and in which committed agent file."""

    times: int
    sessions: int
    file: str | None = None

    def reason(self) -> str:
        """Why the memory is a convention, in words."""
        if self.file:
            return f"committed to the agent file {self.file}"
        return f"said {self.times} times in {self.sessions} sessions"


def convention(memory: Memory, evidence: Evidence) -> NewMemory:
    """The convention that a memory leads to: its content, in its own scope, linked to it.

    The key is of the original: promoted twice, it is still one.
    """
    facts = {
        "promotion": evidence.reason(),
        "times": evidence.times,
        "sessions": evidence.sessions,
        "file": evidence.file,
        "from": str(memory.id),
    }
    return NewMemory(
        id=new_id(),
        scope=memory.scope,
        kind=Kind.CONVENTION,
        content=memory.content,
        content_hash=memory.content_hash,
        words=index_text(" ".join((memory.content, *memory.tags))),
        tier=TREATMENT[Kind.CONVENTION].tier,
        confidence=max(memory.confidence, 0.9),
        key=f"convention:{memory.id}",
        summary=memory.summary,
        tags=memory.tags,
        session=memory.session,
        agent=memory.agent,
        source="promotion",
        edges=(NewEdge(memory.id, EdgeKind.CAUSED_BY, metadata=facts),),
        git=memory.git,
        metadata=facts,
    )
