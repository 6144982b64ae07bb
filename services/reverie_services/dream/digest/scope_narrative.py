"""Writes the overview of a scope with a language model, checked against the memories it cites.

The model is given its earlier sentences and the memories that changed since. If it fails, the
summary of the rules stays.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from pydantic import BaseModel, Field

from reverie.domain.extraction.dream_log import DigestDecision, DreamRunLog
from reverie.domain.extraction.record_validation import (
    DroppedStatement,
    Objection,
    clean_line,
    find_objection,
    find_quotation,
    find_unsupported,
)
from reverie.domain.extraction.wording.salience import is_question
from reverie.domain.redaction.redactor import Redactor
from reverie.domain.text.markdown import shorten
from reverie.domain.text.turns import TurnText
from reverie.inference.llm_client import LanguageModel
from reverie.inference.llm_endpoint import LanguageModelError, UsageTally
from reverie.inference.llm_prompts import fence_items, get_prompt
from reverie.store.sessions.dream_queue import DreamLease
from reverie.store.sessions.summaries import NarratedMemory, NarrativeBasis, SummarySentence
from reverie_services.dream.dependencies import DigestDependencies
from reverie_services.dream.digest.leases import ensure_lease_held
from reverie_services.dream.digest.record_answers import list_cited

MIN_CHANGED = 4
"""The model is asked again after at least this many memories changed."""
MAX_CHANGED, MAX_CONTENT_CHARS = 40, 600
MAX_SENTENCES = 12
MAX_SHOWN_CHARS = 200
TIMEOUTS_PER_NARRATIVE = 2
"""The tries of one request together may take this many times `llm_timeout`."""


class SentenceAnswer(BaseModel):
    """A sentence, the numbers of the items that it rests on, and words of one of them."""

    text: str = Field(max_length=4_000)
    items: list[int] = Field(max_length=200)
    quote: str = Field("", max_length=4_000)


class NarrativeAnswer(BaseModel):
    """The sentences on a scope, the most important first."""

    sentences: list[SentenceAnswer] = Field(max_length=40)


@dataclass(frozen=True)
class NarrativeItem:
    """A numbered item that the model is shown: a memory, or a sentence of the present overview.

    `sources`: the memories behind it, each as one text. `sentence`: None for a memory.
    """

    label: str
    text: str
    sources: Sequence[TurnText]
    versions: Mapping[UUID, int]
    sentence: SummarySentence | None = None


async def update_narrative(
    deps: DigestDependencies, lease: DreamLease, record: DreamRunLog
) -> None:
    """Asks the model for the sentences on a scope, if one is set and enough changed."""
    model = deps.language_model
    if model is None:
        return
    basis = await deps.summaries.load_narrative(lease, MAX_CHANGED)
    if len(basis.changed) < MIN_CHANGED and not (basis.fallen and basis.changed):
        return
    redactor = (await deps.load_redactor(lease.tenant)).within(lease.scope)
    items = await asyncio.to_thread(build_items, basis, redactor)
    try:
        answer = await _ask(deps, model, lease, items, record)
    except LanguageModelError as error:
        record.degraded.add(f"llm: {error}")
        return
    kept, dropped = await asyncio.to_thread(check_sentences, answer, items)
    if not kept and answer.sentences:
        record.degraded.add("llm: the memories do not support its overview")
    sentences = [replace(s, text=redactor.redact(s.text).text) for s in kept]
    ensure_lease_held(
        await deps.summaries.put_narrative(lease, sentences or basis.sentences, basis)
    )
    _record_outcome(deps, record, model, sentences, dropped, redactor)


def build_items(basis: NarrativeBasis, redactor: Redactor) -> list[NarrativeItem]:
    """The sentences that stand and the changed memories, as they are shown to a model: redacted."""
    sentences = [
        NarrativeItem(
            "sentence",
            redactor.redact(sentence.text).text,
            [
                _build_source(memory, redactor.redact(content).text)
                for memory, content in zip(sentence.memories, sentence.contents, strict=True)
            ],
            sentence.memories,
            sentence,
        )
        for sentence in basis.sentences
    ]
    return [*sentences, *(_build_memory_item(memory, redactor) for memory in basis.changed)]


def check_sentences(
    answer: NarrativeAnswer, items: Sequence[NarrativeItem]
) -> tuple[list[SummarySentence], list[DroppedStatement]]:
    """The sentences that the cited memories support, and the others with the reason.

    A sentence that is repeated word for word stands as it was. Nothing in an answer raises an
    error.
    """
    kept: dict[str, SummarySentence] = {}
    dropped = []
    for given in answer.sentences:
        text = clean_line(given.text)
        cited = list_cited(given.items, items)
        memories = tuple(dict.fromkeys(s.id for item in cited for s in item.sources))
        repeated = next((i.sentence for i in cited if i.sentence and i.text == text), None)
        objection = None if repeated else _find_objection(text, given.quote, cited)
        if not objection and len(kept) == MAX_SENTENCES and text not in kept:
            objection = Objection.SPACE
        if objection:
            dropped.append(DroppedStatement(text, objection, memories))
        else:
            kept.setdefault(text, repeated or _build_sentence(text, cited))
    return list(kept.values()), dropped


def _find_objection(text: str, quote: str, cited: Sequence[NarrativeItem]) -> Objection | None:
    sources = list(_iter_sources(cited))
    if not sources:
        return Objection.TURNS
    if is_question(text):
        return Objection.QUESTION
    objection = find_unsupported(text, sources)
    if objection:
        return objection
    # The memories behind a sentence are not shown, so their words may be quoted from it.
    shown = [_build_source(item.sources[0].id, item.text) for item in cited if item.sentence]
    quotation = find_quotation(text, quote, [*sources, *shown])
    return find_objection(text, sources, quotation) if quotation else Objection.QUOTE


def _iter_sources(cited: Sequence[NarrativeItem]) -> Iterator[TurnText]:
    yield from {source.id: source for item in cited for source in item.sources}.values()


def _build_sentence(text: str, cited: Sequence[NarrativeItem]) -> SummarySentence:
    versions = {memory: version for item in cited for memory, version in item.versions.items()}
    return SummarySentence(text, versions, tuple(s.content for s in _iter_sources(cited)))


def _build_memory_item(memory: NarratedMemory, redactor: Redactor) -> NarrativeItem:
    text = shorten(redactor.redact(memory.content).text, MAX_CONTENT_CHARS)
    source = _build_source(memory.id, text)
    return NarrativeItem(memory.kind, text, [source], {memory.id: memory.version})


def _build_source(memory: UUID, content: str) -> TurnText:
    """A memory as a turn, because statements are checked against turns."""
    return TurnText(memory, 0, "assistant", content, datetime.min.replace(tzinfo=UTC))


async def _ask(
    deps: DigestDependencies,
    model: LanguageModel,
    lease: DreamLease,
    items: Sequence[NarrativeItem],
    record: DreamRunLog,
) -> NarrativeAnswer:
    prompt, tally = get_prompt("narrate"), UsageTally()
    text = fence_items((item.label, item.text) for item in items)
    time_limit = TIMEOUTS_PER_NARRATIVE * model.endpoint.timeout
    try:
        return await model.ask(lease.tenant, prompt, text, NarrativeAnswer, tally, time_limit)
    finally:
        record.add_llm_usage(tally.calls, tally.total_tokens, prompt.label)


def _record_outcome(
    deps: DigestDependencies,
    record: DreamRunLog,
    model: LanguageModel,
    sentences: Sequence[SummarySentence],
    dropped: Sequence[DroppedStatement],
    redactor: Redactor,
) -> None:
    if sentences:
        memories = {memory for sentence in sentences for memory in sentence.memories}
        reason = (
            f"the overview has {len(sentences)} sentences on {len(memories)} memories, "
            f"written by {get_prompt('narrate').label} {model.name}"
        )
        record.record_decision(DigestDecision("summarized", reason))
    for statement in dropped:
        text = shorten(redactor.redact(statement.text).text, MAX_SHOWN_CHARS)
        why = f"the overview stated “{text}”: {statement.objection}"
        record.record_decision(DigestDecision("dropped", why))
    objections = Counter(statement.objection.name.lower() for statement in dropped)
    deps.metrics.count_statements({"kept": len(sentences), **objections})
