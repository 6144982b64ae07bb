"""What led to what, by the words that say so. Precision first: a doubtful cause is no edge.

A sentence such as "we moved to X because Y" gives an effect and a cause; a memory that speaks of
the same as one half of it stands for that half. A bug, and the next decision of its session about
the same thing, are cause and effect as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from reverie.domain.anchors import paths
from reverie.domain.entities import Sort, entities_of
from reverie.domain.entity_names import names
from reverie.domain.keeping import Keeping
from reverie.domain.kinds import ANCHORS, Kind
from reverie.domain.prose import plain, sentences
from reverie.domain.words import index_text

_DULL = names(
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
MIN_SHARED = 2
MIN_COVER = 0.5
MIN_COVER_ANCHORED = 0.34
SESSION_CONFIDENCE = 0.5
MAX_TEXT = 20_000
MAX_EVIDENCE = 400


@dataclass(frozen=True)
class Told:
    """A memory as causes are read from it; `at` is when it was learned."""

    id: UUID
    kind: str
    content: str
    at: datetime
    session: UUID | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cause:
    """`src` led to `dst`, with a confidence 0..1, the sentence that says so and the rule."""

    src: UUID
    dst: UUID
    confidence: float
    evidence: str
    rule: str


@dataclass(frozen=True)
class _Claim:
    """A sentence that says what led to what; `forward` where the cause comes first."""

    cause: str
    effect: str
    sentence: str
    forward: bool


def infer_causes(memory: Told, others: Sequence[Told]) -> list[Cause]:
    """The causes and effects of a memory among others of its scope, the surest of each pair."""
    if not _speaks(memory):
        return []
    best: dict[frozenset[UUID], Cause] = {}
    fits = [other for other in others if other.id != memory.id and _speaks(other)]
    for other in fits:
        found = [*_said(memory, other), *_said(other, memory)]
        found += _next_decision(memory, other, fits)
        for cause in found:
            pair = frozenset((cause.src, cause.dst))
            if pair not in best or cause.confidence > best[pair].confidence:
                best[pair] = cause
    return list(best.values())


def _speaks(memory: Told) -> bool:
    return Kind(memory.kind) not in ANCHORS and memory.kind != Kind.SESSION


_BACKWARD = re.compile(
    r"(?<!not )(?<!n't )(?<!just )\b(?:because(?: of)?|due to|caused by|as a result of|owing to"
    r"|thanks to|triggered by|in response to|on account of|in order to (?:fix|avoid|stop)"
    r"|to (?:fix|work around|resolve|address)|(?:this |which )?(?:fixes|resolves|solves))\b[:,]?"
    r"|(?<!不是)(?:因为|由于|起因是|原因是|根因是|是为了(?:解决|修复|避免)|为了(?:解决|修复))",
    re.I,
)
_FORWARD = re.compile(
    r",? (?:and )?so (?:we|i|the team|it was decided)\b(?: now| therefore)?"
    r"|[,;.]? \b(?:therefore|hence|consequently|as a result|for (?:this|that) reason"
    r"|that(?:'s| is) why|which is why)\b,?(?: we)?"
    r"|\b(?:was |were |is |are |got |has been )?(?:fixed|solved|resolved|worked around|mitigated)"
    r" (?:by|with)\b"
    r"|\b(?:led to|leads to|resulted in|results in|caused|causes|broke)\b(?! by)"
    r"|[，,。；;]\s?(?:所以|因此|于是|从而|故)|导致了?|引起了?|造成了?|引发了?",
    re.I,
)
_BECAUSE_FIRST = re.compile(
    r"^\s*(?:because(?: of)?|since|as|due to|owing to)\b(?P<cause>[^,]{6,}),\s*(?P<effect>.{6,})$"
    r"|^\s*(?:因为|由于)(?P<zhcause>[^，,]{3,})[，,]\s?(?:所以|因此|于是|我们)?(?P<zheffect>.{3,})$",
    re.I,
)
_DOUBTED = re.compile(
    r"\b(?:not (?:because|due|caused)|n't (?:because|due|caused|the cause)|might|may|maybe|perhaps"
    r"|possibly|probably|could|would|suspect|unclear|unsure|wonder|whether|if|unless|rule[sd]? out"
    r"|unrelated|hypothes\w+)\b|\?\s*$|不是因为|并非|可能|也许|或许|大概|如果|是否|怀疑|吗？|无关",
    re.I,
)


@Keeping
def _claims(content: str) -> tuple[_Claim, ...]:
    said = sentences(plain(content[:MAX_TEXT]))
    return tuple(claim for sentence in said for claim in _claim(sentence))


def _claim(sentence: str) -> Iterator[_Claim]:
    """What one sentence says led to what; nothing where it doubts, denies or asks."""
    if _DOUBTED.search(sentence):
        return
    evidence = sentence[:MAX_EVIDENCE]
    if first := _BECAUSE_FIRST.match(sentence):
        cause, effect = (g for g in first.groups() if g)
        yield _Claim(cause, effect, evidence, forward=True)
    elif (match := _BACKWARD.search(sentence)) and match.start():
        yield _Claim(sentence[match.end() :], sentence[: match.start()], evidence, forward=False)
    elif (match := _FORWARD.search(sentence)) and match.start():
        yield _Claim(sentence[: match.start()], sentence[match.end() :], evidence, forward=True)


def _said(teller: Told, other: Told) -> Iterator[Cause]:
    """What `teller` says of itself and of `other`, which stands for one half of the sentence."""
    for claim in _claims(teller.content):
        as_cause, as_effect = _match(claim.cause, other), _match(claim.effect, other)
        if as_cause and as_cause > as_effect and other.at <= teller.at:
            sure = round(min(0.9, 0.55 + 0.35 * as_cause), 2)
            yield Cause(other.id, teller.id, sure, claim.sentence, "said")
        elif claim.forward and as_effect > as_cause and _comes_of(other, teller):
            sure = round(min(0.8, 0.45 + 0.35 * as_effect), 2)
            yield Cause(teller.id, other.id, sure, claim.sentence, "said")


def _comes_of(effect: Told, teller: Told) -> bool:
    """Of one kind they would say the same thing twice."""
    return effect.at >= teller.at and effect.kind != teller.kind


def _match(half: str, other: Told) -> float:
    """How much of one half of a sentence another memory speaks of, 0..1; 0 where too little."""
    words, theirs = _words(half), _words(other.content)
    shared = words & theirs
    if len(shared) < MIN_SHARED:
        return 0.0
    cover = len(shared) / len(words)
    anchored = bool(_anchors(half) & _anchors(other.content))
    return cover if cover >= (MIN_COVER_ANCHORED if anchored else MIN_COVER) else 0.0


def _next_decision(memory: Told, other: Told, others: Sequence[Told]) -> Iterator[Cause]:
    """A bug, and the next decision of its session about the same thing."""
    bug, decision = (memory, other) if memory.kind == Kind.BUG else (other, memory)
    if bug.kind != Kind.BUG or decision.kind != Kind.DECISION or not _same_matter(bug, decision):
        return
    between = (
        one
        for one in (*others, memory)
        if one.kind == Kind.DECISION and one.session == bug.session and one.id != decision.id
    )
    if any(_when(bug) < _when(one) < _when(decision) and _shared(bug, one) for one in between):
        return
    if not _claims(decision.content):
        evidence = decision.content.strip()[:MAX_EVIDENCE]
        yield Cause(bug.id, decision.id, SESSION_CONFIDENCE, evidence, "next decision")


def _same_matter(bug: Told, decision: Told) -> bool:
    """Whether they share a file or a name of code; a service alone needs words in common too."""
    if bug.session is None or bug.session != decision.session or _when(bug) >= _when(decision):
        return False
    shared = _shared(bug, decision)
    precise = any(not name.startswith(f"{Sort.SERVICE}:") for name in shared)
    both = _words(bug.content) & _words(decision.content)
    other = [word for word in both if not any(word in name for name in shared)]
    return precise or (bool(shared) and len(other) >= MIN_SHARED)


def _when(memory: Told) -> tuple[datetime, UUID]:
    return memory.at, memory.id


def _shared(one: Told, two: Told) -> set[str]:
    return {*_anchors(one.content), *one.files} & {*_anchors(two.content), *two.files}


@Keeping
def _anchors(text: str) -> frozenset[str]:
    head = text[:MAX_TEXT]
    return frozenset([*paths(head), *(f"{e.sort}:{e.name}" for e in entities_of(head))])


@Keeping
def _words(text: str) -> frozenset[str]:
    """What a text says, in rough stems, without the words that any text has."""
    said = index_text(text[:MAX_TEXT]).split()
    return frozenset(_stem(word) for word in said if word not in _DULL and len(word) > 1)


def _stem(word: str) -> str:
    if not word.isascii() or len(word) < 5:
        return word
    for ending in ("ations", "ation", "ings", "ing", "ies", "ed", "es", "ion", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word[: -len(ending)]
            return stem[:-1] if stem[-1] == stem[-2] and len(stem) > 3 else stem
    return word
