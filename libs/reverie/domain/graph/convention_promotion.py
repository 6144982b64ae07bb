"""Promotion of a memory that was stated often to a convention: the evidence, the new memory."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import KIND_POLICIES, EdgeKind, Kind
from reverie.domain.core.memory import Memory, NewEdge, NewMemory
from reverie.domain.text.index_terms import index_text

PROMOTABLE_KINDS = (Kind.CONTEXT, Kind.DECISION, Kind.LESSON, Kind.PREFERENCE, Kind.SPEC)
"""Kinds whose memories may become conventions: the others are records, not rules."""

AGENT_RULE_FILES = (
    "agents.md",
    "claude.md",
    "gemini.md",
    "copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "conventions.md",
)
"""Names, in lower case, of files with rules for agents in a repository."""


@dataclass(frozen=True)
class PromotionEvidence:
    """How often a memory was stated, in how many sessions, and in which committed agent file."""

    occurrences: int
    session_count: int
    file: str | None = None

    def describe(self) -> str:
        """Why the memory is a convention, in words."""
        if self.file:
            return f"committed to the agent file {self.file}"
        return f"said {self.occurrences} times in {self.session_count} sessions"


def build_convention(memory: Memory, evidence: PromotionEvidence) -> NewMemory:
    """The convention that a memory leads to: its content, in its own scope, linked to it.

    The key is of the original: promoted twice, it is still one.
    """
    details = {
        "promotion": evidence.describe(),
        "times": evidence.occurrences,
        "sessions": evidence.session_count,
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
        tier=KIND_POLICIES[Kind.CONVENTION].tier,
        confidence=max(memory.confidence, 0.9),
        key=f"convention:{memory.id}",
        summary=memory.summary,
        tags=memory.tags,
        session=memory.session,
        agent=memory.agent,
        source="promotion",
        edges=(NewEdge(memory.id, EdgeKind.CAUSED_BY, metadata=details),),
        git=memory.git,
        metadata=details,
    )
