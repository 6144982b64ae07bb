"""Causal edges inferred from labelled sequences of memories."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid5

from reverie.domain.graph.causal_inference import CauseCandidate, infer_causes

STORIES = json.loads((Path(__file__).parent / "cause_stories.json").read_text())
BEGUN = datetime(2024, 5, 1, tzinfo=UTC)


def _candidates(memories: list[list[str]]) -> list[CauseCandidate]:
    return [
        CauseCandidate(
            id=UUID(int=n + 1),
            kind=kind,
            content=content,
            at=BEGUN + timedelta(minutes=n),
            session=uuid5(UUID(int=0), session[0]) if session else None,
        )
        for n, (kind, content, *session) in enumerate(memories)
    ]


def _cause_pairs(memories: list[list[str]]) -> set[str]:
    """What is found as each memory arrives, those before it being there."""
    told = _candidates(memories)
    causes = [c for n, one in enumerate(told) for c in infer_causes(one, told[:n])]
    return {f"{c.src.int - 1}>{c.dst.int - 1}" for c in causes}


def test_causes_are_found_in_labelled_stories_with_few_false_ones() -> None:
    right = wrong = missed = 0
    mistakes = []
    for name, memories, labels in STORIES:
        found = _cause_pairs(memories)
        right += len(found & set(labels))
        wrong += len(found - set(labels))
        missed += len(set(labels) - found)
        if found != set(labels):
            mistakes.append((name, found, labels))
    precision, recall = right / (right + wrong), right / (right + missed)
    print(f"{len(STORIES)} stories: precision {precision:.3f} recall {recall:.3f}", *mistakes)
    assert precision >= 0.9, mistakes
    assert recall >= 0.7, mistakes


def test_a_cause_has_its_sentence_and_a_confidence() -> None:
    bug, decision = _candidates(STORIES[0][1])
    [cause] = infer_causes(decision, [bug])
    assert (cause.src, cause.dst, cause.rule) == (bug.id, decision.id, "said")
    assert cause.evidence == decision.content
    assert 0.5 < cause.confidence <= 0.9


def test_the_same_cause_is_found_from_either_memory() -> None:
    bug, decision = _candidates(STORIES[0][1])
    assert infer_causes(bug, [decision]) == infer_causes(decision, [bug])
