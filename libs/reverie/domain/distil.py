"""What lasts of a conversation, without a language model: chosen sentences, cleaned.

A slice is read as exchanges: something the user said, and what came of it. Kept are the user's
rules, wishes, choices and facts, each by itself; causes, changes and workings that the agent
reported; answers and corrections; and the commands that checked the work. Of these the weightiest,
as far as a share of what was said gives room. Tool outputs, code, greetings, announcements ("let me
look"), and that tests passed are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from reverie.domain.about_files import Worked, files_about, worked, writers, wrote
from reverie.domain.choosing import chosen, near, room_of
from reverie.domain.drafts import Draft
from reverie.domain.entities import entities_of
from reverie.domain.exchanges import exchanges_of
from reverie.domain.kinds import Kind
from reverie.domain.salience import KEPT
from reverie.domain.session_lines import lines_of
from reverie.domain.slices import Slice
from reverie.domain.words import index_text

MAX_SESSION = 1_600
MAX_MEMORIES = 40
MAX_TAGS = 12
SESSION_SHARE, SESSION_LEAST = 0.04, 55
"""Of what was said, in characters, what the session's own memory may take; and by topic."""

_DULL = frozenset(
    """that this with from have when which what then than they asked
    outcome should would could there their into only also""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Distilled:
    """A memory made from turns. `priority` runs from 0 to 1; `at` is when it became true.

    `by`: the prompt with its version and the model that worded it; empty where rules did.
    `wrote`: of the files those that the session had written by then, each with when.
    """

    content: str
    kind: Kind
    tags: tuple[str, ...]
    priority: float
    files: tuple[str, ...]
    turns: tuple[UUID, ...]
    at: datetime
    by: str = ""
    wrote: tuple[tuple[str, datetime], ...] = ()


def distil(slices: Sequence[Slice], roots: Sequence[str] = ()) -> list[Distilled]:
    """The lasting memories of a session's slices, in order of time, near-copies collapsed.

    At most `MAX_MEMORIES`, the less important left out. `roots` are the workspace folders
    that absolute paths are relative to. The same slices give the same memories.
    """
    work = worked((turn for part in slices for turn in part.turns), roots)
    return distinct(_made(draft, roots, work) for part in slices for draft in chosen(part))


def distinct(segments: Iterable[Distilled]) -> list[Distilled]:
    """Segments of several slices, near-copies collapsed, at most `MAX_MEMORIES`."""
    kept = _distinct((set(index_text(one.content).split()), one) for one in segments)
    ranked = sorted(kept, key=lambda one: -one.priority)[:MAX_MEMORIES]
    return [one for one in kept if one in ranked]


def session_memory(slices: Sequence[Slice], roots: Sequence[str] = ()) -> Distilled | None:
    """What a session was asked and what came of it; None where nobody asked anything."""
    exchanges = [exchange for part in slices for exchange in exchanges_of(part)]
    requests = [exchange for exchange in exchanges if exchange.request]
    if not requests or not requests[0].opening:
        return None
    everything = [turn for part in slices for turn in part.turns]
    room = room_of(everything, SESSION_SHARE, SESSION_LEAST * len(slices), MAX_SESSION)
    lines, cited = lines_of(requests, room)
    draft = Draft("\n".join(lines), cited, Kind.SESSION, KEPT, changed=writers(everything))
    work = worked(everything, roots)
    made = _made(draft, roots, work)
    written = wrote(made.files, work, everything[-1].at)
    return replace(made, at=requests[0].opening.at, wrote=written)


def _made(draft: Draft, roots: Sequence[str], work: Worked) -> Distilled:
    at = max(turn.at for turn in draft.turns)
    files = files_about(draft.content, draft.changed, work, at, roots)
    return Distilled(
        content=draft.content,
        kind=draft.kind,
        tags=_tags(draft.content, draft.asked),
        priority=round(min(max(0.3 + 0.115 * draft.worth, 0.05), 1.0), 3),
        files=files,
        turns=tuple(dict.fromkeys(turn.id for turn in draft.turns)),
        at=at,
        wrote=wrote(files, work, at),
    )


def _tags(content: str, asked: str) -> tuple[str, ...]:
    """What it names first, then the words said most often, then those of the request."""
    names = [entity.label[:64] for entity in entities_of(content)[:4]]
    sought = [word for word in _common(asked) if word not in _common(content, 40)]
    return tuple(dict.fromkeys([*names, *_common(content), *sought]))[:MAX_TAGS]


def _common(text: str, most: int = 4) -> list[str]:
    words = re.findall(r"[a-z][a-z-]{3,}", re.sub(r"`[^`]*`|\S*/\S*", " ", text.lower()))
    return [word for word, _ in Counter(w for w in words if w not in _DULL).most_common(most)]


def _distinct(memories: Iterable[tuple[set[str], Distilled]]) -> list[Distilled]:
    """Without near-copies by their words: of two, the weightier stays, citing both's turns."""
    kept: list[tuple[set[str], Distilled]] = []
    for words, memory in memories:
        twin = next((i for i, (seen, _) in enumerate(kept) if near(seen, words)), None)
        if twin is None:
            kept.append((words, memory))
            continue
        seen, other = kept[twin]
        better = max(other, memory, key=lambda m: (m.priority, len(m.content)))
        turns = tuple(dict.fromkeys(other.turns + memory.turns))
        kept[twin] = (words if better is memory else seen, replace(better, turns=turns))
    return [memory for _, memory in kept]
