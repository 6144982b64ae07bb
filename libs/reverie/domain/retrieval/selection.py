"""Selects the memories of an answer: exact names first, no duplicates, diverse texts.

Diversity is maximal marginal relevance (MMR) over the words of texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heapreplace
from uuid import UUID

from reverie.domain.retrieval.candidates import Rejection, ScoredMemory
from reverie.domain.retrieval.exact_name_match import find_name_holders
from reverie.domain.retrieval.scoring import boost_named
from reverie.domain.retrieval.succession import Successors, list_successors_first

POOL_FACTOR = 3
"""Diversity chooses from the best candidates: this many times the limit of the answer."""
MMR_LAMBDA = 0.7
_WORD = re.compile(r"[^\W_]+|[\u3400-\u9fff]")
_ASCII_SEPARATORS = {code: " " for code in range(128) if not chr(code).isalnum()}


def tokenize(text: str) -> frozenset[str]:
    """The case-folded words of a text; Chinese by character."""
    if text.isascii():
        # The same words, three times as fast.
        return frozenset(text.lower().translate(_ASCII_SEPARATORS).split())
    return frozenset(_WORD.findall(text.casefold()))


def jaccard_similarity(first: frozenset[str], second: frozenset[str]) -> float:
    """The Jaccard similarity of two sets, 0..1."""
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared) if shared else 0.0


def diversify(
    scores: Sequence[float],
    token_set: Callable[[int], frozenset[str]],
    limit: int,
    weight: float = MMR_LAMBDA,
) -> list[tuple[int, float]]:
    """The indexes of the best `limit` texts, each with its similarity to those selected before it.

    Maximal marginal relevance (Carbonell & Goldstein 1998): each step selects the greatest
    `weight * score - (1 - weight) * similarity`. Scores are shares of the best score; the
    similarity is that to the most similar selected text. Ties go to the lower index. `token_set`:
    the words of a text, asked for only where texts are compared.
    """
    if not scores:
        return []
    best = max(scores) or 1.0
    max_similarity, compared_count = [0.0] * len(scores), [0] * len(scores)
    queue = [(-weight * score / best, index) for index, score in enumerate(scores)]
    heapify(queue)
    selected: list[tuple[int, float]] = []
    while queue and len(selected) < limit:
        _, index = queue[0]
        if compared_count[index] == len(selected):
            heappop(queue)
            selected.append((index, max_similarity[index]))
            continue
        # A value only falls, so a text is compared only once it is the best of the queue.
        for other, _ in selected[compared_count[index] :]:
            max_similarity[index] = max(
                max_similarity[index], jaccard_similarity(token_set(index), token_set(other))
            )
        compared_count[index] = len(selected)
        current_score = weight * scores[index] / best - (1 - weight) * max_similarity[index]
        heapreplace(queue, (-current_score, index))
    return selected


@dataclass(frozen=True)
class Selection:
    """The selected memories in order, all candidates as finally ranked, and what explains both.

    `similarities`: the similarity of a memory to those selected before it.
    """

    memories: Sequence[ScoredMemory]
    ranked: Sequence[ScoredMemory]
    similarities: Mapping[UUID, float]
    rejections: Mapping[UUID, Rejection]


def select_memories(
    ranked: Sequence[ScoredMemory],
    contents: Mapping[UUID, str],
    successors: Successors,
    only_names: Sequence[str],
    limit: int,
    mmr_lambda: float = MMR_LAMBDA,
    *,
    with_spares: bool = False,
) -> Selection:
    """Selects at most `limit` memories, or the whole pool `with_spares`.

    `ranked` has each replaced memory behind its successor; so has the selection. Spares are for
    answers in which turns or smaller memories may take the places of others.
    """
    named_ids = find_name_holders(contents, only_names, successors) if only_names else set()
    ranked = boost_named(ranked, named_ids)
    # Of several memories with one text, the first stays.
    first_by_hash: dict[int, ScoredMemory] = {}
    rejections: dict[UUID, Rejection] = {}
    for memory in ranked:
        first = first_by_hash.setdefault(memory.text_hash, memory)
        if first is not memory:
            rejections[memory.id] = Rejection("double", first.id)
    pool = list(first_by_hash.values())[: limit * POOL_FACTOR]
    token_set = cache(lambda index: tokenize(contents[pool[index].id]))
    count = len(pool) if named_ids or with_spares else limit
    order = diversify([memory.score for memory in pool], token_set, count, mmr_lambda)
    similarities = {pool[index].id: similarity for index, similarity in order}
    diverse = [pool[index] for index, _ in order]
    selected = list_successors_first(diverse, pool, successors)[:count]
    selected_ids = {memory.id for memory in selected}
    for index, memory in enumerate(pool):
        if memory.id in selected_ids:
            continue
        rejections[memory.id] = _explain_rejection(memory, selected[-1])
        if rejections[memory.id].reason == "diversity" and memory.id not in similarities:
            similarities[memory.id] = max(
                jaccard_similarity(token_set(index), token_set(other)) for other, _ in order
            )
    selected.sort(key=lambda memory: memory.id not in named_ids)
    if not with_spares:
        for memory in selected[limit:]:
            rejections[memory.id] = _explain_rejection(memory, selected[limit - 1])
        selected = selected[:limit]
    return Selection(selected, ranked, similarities, rejections)


def _explain_rejection(memory: ScoredMemory, last_selected: ScoredMemory) -> Rejection:
    return Rejection("diversity" if memory.score > last_selected.score else "limit")
