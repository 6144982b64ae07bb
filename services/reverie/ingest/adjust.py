"""What a turn corrects: rules read "no longer X, use Y", a language model more where one is set."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pydantic import BaseModel, Field

from reverie.domain.access import Principal
from reverie.domain.corrections import concerns, corrected, corrections, may_correct
from reverie.domain.grounding import gives_orders, is_grounded, share_of
from reverie.domain.ids import new_id
from reverie.domain.kinds import TREATMENT, Kind
from reverie.domain.memory import Memory, NewMemory, content_hash
from reverie.domain.redaction import redact
from reverie.domain.said import memory_words
from reverie.domain.words import index_text
from reverie.inference.asking import Tally, Unanswered
from reverie.inference.fencing import fenced
from reverie.inference.language import LanguageModel
from reverie.inference.prompts import prompt
from reverie.store.sessions import Session

KINDS = (Kind.PREFERENCE, Kind.CONVENTION, Kind.DECISION)
"""Kinds of memories that say how things are to be done, and so can be taken back."""

MOST = 3
"""Memories that one correction takes back at most; where more fit, it is about none of them."""

SHOWN = 24
MAX_WORDS = 2_000
MODEL_SECONDS = 15.0
SURE = 0.9


@dataclass(frozen=True)
class Change:
    """A memory to be written in the place of another, or beside all; what was said; by what."""

    old: Memory | None
    content: str
    said: str
    by: str = ""


class _Told(BaseModel):
    said: int
    memory: int | None = None
    content: str = Field(min_length=8, max_length=600)
    old: str = Field(max_length=200)
    new: str = Field(max_length=200)


class Told(BaseModel):
    """What a model says was corrected."""

    corrections: list[_Told] = Field(max_length=10)


def concerned(said: Sequence[str], model: LanguageModel | None) -> bool:
    """Whether a turn is worth a look: rules find a correction, or a model might."""
    return any(corrections(text) or (model is not None and may_correct(text)) for text in said)


def looked_for(said: Sequence[str], model: LanguageModel | None) -> str:
    """The words that memories are looked for by: what is out, and for a model all that was said."""
    out = [one.old for text in said for one in corrections(text)]
    return index_text(" ".join([*out, *(said if model else ())])[:MAX_WORDS])


def by_rules(said: Sequence[str], standing: Sequence[Memory]) -> list[Change]:
    """The changes that rules find. What is out and stands nowhere is a new preference only where
    it is meant to last."""
    changes: list[Change] = []
    for one in [found for text in said for found in corrections(text)]:
        hit = [memory for memory in standing if concerns(one, memory.content)]
        if 0 < len(hit) <= MOST:
            changes += [Change(memory, corrected(one, memory.content), one.said) for memory in hit]
        elif not hit and one.lasting:
            changes.append(Change(None, one.said, one.said))
    return _once(changes)


async def by_model(
    model: LanguageModel, tenant: int, said: Sequence[str], standing: Sequence[Memory]
) -> list[Change]:
    """The changes that a model finds, held against what was said. Raises `Unanswered`."""
    shown = _nearest(said, standing)
    items = [("said", text) for text in said] + [("memory", one.content) for one in shown]
    text = fenced([(label, redact(text[:4_000]).text) for label, text in items])
    task = prompt("adjust")
    try:
        async with asyncio.timeout(MODEL_SECONDS):
            told = await model.ask(tenant, task, text, Told, Tally())
    except TimeoutError as error:
        raise Unanswered("it took too long") from error
    by = f"{task.label} {model.name}"
    found = [_change(one, said, shown, by) for one in told.corrections]
    return _once([one for one in found if one is not None])


def _nearest(said: Sequence[str], standing: Sequence[Memory]) -> list[Memory]:
    """Those that share most words with what was said, the surest first among equals."""
    words = "\n".join(said)
    return sorted(standing, key=lambda one: -share_of(one.content, words))[:SHOWN]


def _change(told: _Told, said: Sequence[str], shown: Sequence[Memory], by: str) -> Change | None:
    """The change, where its sentence was said and it names what it takes back."""
    place = (told.memory or 0) - len(said) - 1
    if not 1 <= told.said <= len(said) or (told.memory is not None and not 0 <= place < len(shown)):
        return None
    sentence = said[told.said - 1]
    old = shown[place] if told.memory is not None else None
    known = f"{sentence}\n{old.content if old else ''}"
    content = " ".join(told.content.split())
    if gives_orders(content) or not is_grounded(content, known) or not _says(sentence, told.new):
        return None
    return Change(old, content, sentence[:400], by)


def _says(sentence: str, name: str) -> bool:
    return bool(name.strip()) and name.strip().lower() in sentence.lower()


def _once(changes: Sequence[Change]) -> list[Change]:
    """Each memory corrected once, the first time."""
    kept: dict[UUID | str, Change] = {}
    for one in changes:
        kept.setdefault(one.old.id if one.old else one.content, one)
    return list(kept.values())


def joined(told: Sequence[Change], ruled: Sequence[Change]) -> list[Change]:
    """What a model found, and what rules found of other memories, or where it found nothing."""
    return _once([*told, *(one for one in ruled if one.old or not told)])


def memory_of(change: Change, who: Principal, session: Session) -> NewMemory:
    """The memory that takes the place of the old one: in its scope, as pinned, and sure."""
    old = change.old
    content = redact(change.content).text
    said = redact(change.said).text
    kind = old.kind if old else Kind.PREFERENCE
    tags = old.tags if old else ()
    by = {"made_by": change.by} if change.by else {}
    return NewMemory(
        id=new_id(),
        scope=old.scope if old else session.scope,
        kind=kind,
        content=content,
        content_hash=content_hash(content),
        words=memory_words(old.key if old else None, content, tags),
        tier=TREATMENT[kind].tier,
        confidence=max(old.confidence if old else 0.0, SURE),
        tags=tuple(tags),
        pinned=old.pinned if old else False,
        session=session.id,
        agent=who.agent or session.agent,
        source="adjust",
        metadata={"said": said, **by},
    )
