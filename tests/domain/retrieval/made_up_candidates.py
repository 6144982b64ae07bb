"""Made-up hits, candidates and facts, as ranking reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np

from reverie.domain.core.kinds import Tier
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.candidates import ArmHits, Candidates
from reverie.domain.retrieval.ranking_facts import FactTable, encode_facts, number_scopes
from tests.domain.made_up_memories import build_memory


def uid(n: int) -> UUID:
    return UUID(int=n)


def hits(*found: tuple[int, float], long: Sequence[int] | None = None) -> ArmHits:
    """What an arm found, best first."""
    docs = np.array([doc for doc, _ in found], np.int64)
    scores = np.array([score for _, score in found], np.float64)
    return ArmHits(docs, scores, None if long is None else np.isin(docs, long))


def candidates(*found: tuple[int, float], **ranks: Sequence[int]) -> Candidates:
    docs, scores = hits(*found).docs, hits(*found).scores
    return Candidates(
        docs, scores, scores, {arm: np.array(of_arm, np.int32) for arm, of_arm in ranks.items()}
    )


def listed(found: Candidates) -> list[tuple[int, float]]:
    return list(zip(found.docs.tolist(), found.scores.tolist(), strict=True))


def ranks_of(found: Candidates, doc: int) -> dict[str, int]:
    """The ranks at which the arms found a memory."""
    place = found.docs.tolist().index(doc)
    return {arm: int(ranks[place]) for arm, ranks in found.ranks.items() if ranks[place]}


def memory(n: int = 1, **fields: Any) -> Memory:
    return build_memory(**{"id": uid(n), "tier": Tier.WARM, "linked": True, **fields})


def facts(*memories: Memory, ranks: Sequence[float] = ()) -> FactTable:
    records = encode_facts((place, None, one) for place, one in enumerate(memories))
    records["rank"][: len(ranks)] = ranks
    passes = np.ones(len(records), np.bool_)
    return FactTable(records, passes, *number_scopes(one.scope for one in memories))
