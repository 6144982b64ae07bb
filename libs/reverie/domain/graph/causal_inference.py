"""Inference of causal edges between memories from causal phrases, in English and Chinese.

A sentence such as "we moved to X because Y" gives an effect and a cause. A memory about the same
subject as one half represents that half. A bug causes the next decision of its session about the
same subject. Precision comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from reverie.domain.core.kinds import ANCHOR_KINDS, Kind
from reverie.domain.entities.file_paths import extract_paths
from reverie.domain.entities.recognition import EntityType, extract_entities
from reverie.domain.text.characters import word_set
from reverie.domain.text.index_terms import index_text
from reverie.domain.text.markdown import split_sentences, to_plain_text
from reverie.domain.text.normalization import cache_by_text

_STOP_WORDS = word_set(
    """the and for with that this was were are is be been it its of to in on at by an as or not no
    we our us they them their he she you your had has have did do does so but then than from into
    out up after before when while which who what how why all any each some more most very too also
    just only now still again there here can cannot could should would will must may might one two
    use used uses using make made makes get got gets keep kept set new old same other every per
    because due caused cause causes so therefore fixed fix fixes bug bugs issue problem decision
    decided decide error errors fail failed fails failing broke break breaks add added
    因为 所以 由于
    导致 我们 可以 已经 现在 决定 问题 使用"""
)
MIN_SHARED_WORDS = 2
MIN_OVERLAP = 0.5
MIN_OVERLAP_ANCHORED = 0.34
SESSION_CONFIDENCE = 0.5
MAX_TEXT = 20_000
MAX_EVIDENCE = 400


@dataclass(frozen=True)
class CauseCandidate:
    """A memory as causes are read from it; `at` is when it was learned."""

    id: UUID
    kind: str
    content: str
    at: datetime
    session: UUID | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class CausalLink:
    """A causal edge from `src` to `dst`: its confidence 0..1, the sentence, and the rule."""

    src: UUID
    dst: UUID
    confidence: float
    evidence: str
    rule: str


@dataclass(frozen=True)
class _CausalClaim:
    """A sentence with a cause and an effect; `cause_first` if the cause comes first."""

    cause: str
    effect: str
    sentence: str
    cause_first: bool


def infer_causes(memory: CauseCandidate, candidates: Sequence[CauseCandidate]) -> list[CausalLink]:
    """The causes and effects of a memory among others of its scope, the surest of each pair."""
    if not _is_eligible(memory):
        return []
    best: dict[frozenset[UUID], CausalLink] = {}
    eligible = [other for other in candidates if other.id != memory.id and _is_eligible(other)]
    for other in eligible:
        links = [*_match_claims(memory, other), *_match_claims(other, memory)]
        links += _infer_next_decision(memory, other, eligible)
        for cause in links:
            pair = frozenset((cause.src, cause.dst))
            if pair not in best or cause.confidence > best[pair].confidence:
                best[pair] = cause
    return list(best.values())


def _is_eligible(memory: CauseCandidate) -> bool:
    return Kind(memory.kind) not in ANCHOR_KINDS and memory.kind != Kind.SESSION


_EFFECT_FIRST = re.compile(
    r"(?<!not )(?<!n't )(?<!just )\b(?:because(?: of)?|due to|caused by|as a result of|owing to"
    r"|thanks to|triggered by|in response to|on account of|in order to (?:fix|avoid|stop)"
    r"|to (?:fix|work around|resolve|address)|(?:this |which )?(?:fixes|resolves|solves))\b[:,]?"
    r"|(?<!不是)(?:因为|由于|起因是|原因是|根因是|是为了(?:解决|修复|避免)|为了(?:解决|修复))",
    re.I,
)
_CAUSE_FIRST = re.compile(
    r",? (?:and )?so (?:we|i|the team|it was decided)\b(?: now| therefore)?"
    r"|[,;.]? \b(?:therefore|hence|consequently|as a result|for (?:this|that) reason"
    r"|that(?:'s| is) why|which is why)\b,?(?: we)?"
    r"|\b(?:was |were |is |are |got |has been )?(?:fixed|solved|resolved|worked around|mitigated)"
    r" (?:by|with)\b"
    r"|\b(?:led to|leads to|resulted in|results in|caused|causes|broke)\b(?! by)"
    r"|[，,。；;]\s?(?:所以|因此|于是|从而|故)|导致了?|引起了?|造成了?|引发了?",
    re.I,
)
_LEADING_BECAUSE = re.compile(
    r"^\s*(?:because(?: of)?|since|as|due to|owing to)\b(?P<cause>[^,]{6,}),\s*(?P<effect>.{6,})$"
    r"|^\s*(?:因为|由于)(?P<zhcause>[^，,]{3,})[，,]\s?(?:所以|因此|于是|我们)?(?P<zheffect>.{3,})$",
    re.I,
)
_UNCERTAIN = re.compile(
    r"\b(?:not (?:because|due|caused)|n't (?:because|due|caused|the cause)|might|may|maybe|perhaps"
    r"|possibly|probably|could|would|suspect|unclear|unsure|wonder|whether|if|unless|rule[sd]? out"
    r"|unrelated|hypothes\w+)\b|\?\s*$|不是因为|并非|可能|也许|或许|大概|如果|是否|怀疑|吗？|无关",
    re.I,
)


@cache_by_text
def _extract_claims(content: str) -> tuple[_CausalClaim, ...]:
    sentence_list = split_sentences(to_plain_text(content[:MAX_TEXT]))
    return tuple(claim for sentence in sentence_list for claim in _parse_claim(sentence))


def _parse_claim(sentence: str) -> Iterator[_CausalClaim]:
    """Parses the cause and effect of a sentence; none if it doubts, denies or asks."""
    if _UNCERTAIN.search(sentence):
        return
    evidence = sentence[:MAX_EVIDENCE]
    if leading_match := _LEADING_BECAUSE.match(sentence):
        cause, effect = (group for group in leading_match.groups() if group)
        yield _CausalClaim(cause, effect, evidence, cause_first=True)
    elif (match := _EFFECT_FIRST.search(sentence)) and match.start():
        yield _CausalClaim(
            sentence[match.end() :], sentence[: match.start()], evidence, cause_first=False
        )
    elif (match := _CAUSE_FIRST.search(sentence)) and match.start():
        yield _CausalClaim(
            sentence[: match.start()], sentence[match.end() :], evidence, cause_first=True
        )


def _match_claims(source: CauseCandidate, other: CauseCandidate) -> Iterator[CausalLink]:
    """Matches claims in `source` about itself and `other`, which is half of the sentence."""
    for claim in _extract_claims(source.content):
        as_cause, as_effect = (
            _measure_overlap(claim.cause, other),
            _measure_overlap(claim.effect, other),
        )
        if as_cause and as_cause > as_effect and other.at <= source.at:
            confidence = round(min(0.9, 0.55 + 0.35 * as_cause), 2)
            yield CausalLink(other.id, source.id, confidence, claim.sentence, "said")
        elif (
            claim.cause_first
            and as_effect > as_cause
            and other.at >= source.at
            # Memories of one kind would repeat each other.
            and other.kind != source.kind
        ):
            confidence = round(min(0.8, 0.45 + 0.35 * as_effect), 2)
            yield CausalLink(source.id, other.id, confidence, claim.sentence, "said")


def _measure_overlap(clause: str, other: CauseCandidate) -> float:
    """Returns the overlap of a memory with half of a sentence, 0..1; 0 if it is too small."""
    words, other_words = _extract_stems(clause), _extract_stems(other.content)
    shared = words & other_words
    if len(shared) < MIN_SHARED_WORDS:
        return 0.0
    overlap = len(shared) / len(words)
    shares_anchor = bool(_extract_anchors(clause) & _extract_anchors(other.content))
    return overlap if overlap >= (MIN_OVERLAP_ANCHORED if shares_anchor else MIN_OVERLAP) else 0.0


def _infer_next_decision(
    memory: CauseCandidate, other: CauseCandidate, others: Sequence[CauseCandidate]
) -> Iterator[CausalLink]:
    """A bug, and the next decision of its session about the same thing."""
    bug, decision = (memory, other) if memory.kind == Kind.BUG else (other, memory)
    if (
        bug.kind != Kind.BUG
        or decision.kind != Kind.DECISION
        or not _is_same_subject(bug, decision)
    ):
        return
    between = (
        candidate
        for candidate in (*others, memory)
        if candidate.kind == Kind.DECISION
        and candidate.session == bug.session
        and candidate.id != decision.id
    )
    if any(
        _order_key(bug) < _order_key(candidate) < _order_key(decision)
        and _shared_anchors(bug, candidate)
        for candidate in between
    ):
        return
    if not _extract_claims(decision.content):
        evidence = decision.content.strip()[:MAX_EVIDENCE]
        yield CausalLink(bug.id, decision.id, SESSION_CONFIDENCE, evidence, "next decision")


def _is_same_subject(bug: CauseCandidate, decision: CauseCandidate) -> bool:
    """Returns whether both share a file or a code name; a service also needs common words."""
    if (
        bug.session is None
        or bug.session != decision.session
        or _order_key(bug) >= _order_key(decision)
    ):
        return False
    shared = _shared_anchors(bug, decision)
    precise = any(not name.startswith(f"{EntityType.SERVICE}:") for name in shared)
    common_words = _extract_stems(bug.content) & _extract_stems(decision.content)
    other_words = [word for word in common_words if not any(word in name for name in shared)]
    return precise or (bool(shared) and len(other_words) >= MIN_SHARED_WORDS)


def _order_key(memory: CauseCandidate) -> tuple[datetime, UUID]:
    return memory.at, memory.id


def _shared_anchors(first: CauseCandidate, second: CauseCandidate) -> set[str]:
    return {*_extract_anchors(first.content), *first.files} & {
        *_extract_anchors(second.content),
        *second.files,
    }


@cache_by_text
def _extract_anchors(text: str) -> frozenset[str]:
    head = text[:MAX_TEXT]
    return frozenset(
        [
            *extract_paths(head),
            *(f"{entity.type}:{entity.name}" for entity in extract_entities(head)),
        ]
    )


@cache_by_text
def _extract_stems(text: str) -> frozenset[str]:
    """Returns the rough stems of a text, without very common words."""
    terms = index_text(text[:MAX_TEXT]).split()
    return frozenset(
        _stem_word(word) for word in terms if word not in _STOP_WORDS and len(word) > 1
    )


def _stem_word(word: str) -> str:
    if not word.isascii() or len(word) < 5:
        return word
    for ending in ("ations", "ation", "ings", "ing", "ies", "ed", "es", "ion", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word[: -len(ending)]
            return stem[:-1] if stem[-1] == stem[-2] and len(stem) > 3 else stem
    return word
