"""Whether two memories say the same, the same and more, the opposite, or merely the like.

What is judged a duplicate or refined is merged, so these rules would rather miss one: every
number, name and negation must agree, and no content word may be left over. Nearness in meaning
only forbids; it never makes two statements one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reverie.domain.kinds import ANCHORS, Kind
from reverie.domain.statements import NUMBER, Statement, is_name, spaced, statement, stem


class Verdict(StrEnum):
    """How two memories stand to each other."""

    DUPLICATE = "duplicate"
    REFINED = "refined"
    CONTRADICTING = "contradicting"
    SIMILAR = "similar"


@dataclass(frozen=True)
class Said:
    """What the rules read of a memory; `files` are those it is anchored to beside its text."""

    content: str
    kind: Kind = Kind.CONTEXT
    key: str | None = None
    pinned: bool = False
    files: frozenset[str] = field(default_factory=frozenset)
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True)
class Likeness:
    """A verdict and why; `fuller`: the side whose words say more, if one does.

    `valued`: they differ by a value alone, so that they stand in a row with all that give others.
    """

    verdict: Verdict
    reason: str
    fuller: str | None = None
    valued: bool = False


MERGES = frozenset({Verdict.DUPLICATE, Verdict.REFINED})
# State of their own hangs on tasks and skills; sessions and the past tell of one time each.
_NEVER_MERGED = ANCHORS | {Kind.TASK, Kind.SKILL, Kind.SESSION}
_NEVER_CONTRADICTED = ANCHORS | {Kind.TASK, Kind.SKILL, Kind.SESSION, Kind.HISTORICAL, Kind.BUG}
MIN_WORDS = 2
# Characters. A longer text is no statement, and taking it apart takes the square of its length.
MAX_LENGTH = 8192
# A longer text says many things: two of them always hold words that speak against each other.
MAX_CLAIM = 600
# Cosines below these say that the words agree by chance. Measured: tests/bench/duplicates.py.
MERGE_COSINE = 0.7
CONTRADICT_COSINE = 0.6
_OPPOSITES = frozenset(
    frozenset(map(stem, pair.split("/")))
    for pair in spaced(
        """enabled/disabled required/optional required/forbidden allowed/forbidden
        allowed/denied allowed/prohibited public/private synchronously/asynchronously
        synchronous/asynchronous sync/async true/false mutable/immutable included/excluded
        accepted/rejected mandatory/optional manual/automatic manually/automatically
        stateful/stateless tabs/spaces increased/decreased strict/lenient blocking/nonblocking
        ascending/descending"""
    )
)
# A number after one of these names a thing; it is no value that could change.
_NUMBERED = frozenset(
    map(
        stem,
        spaced(
            """migration issue bug pr ticket error step test case phase task chapter sprint line
            shard worker replica server host instance stage level tier day week release rfc adr
            milestone option attempt requirement epic story number fact item entry note part version
            run build round commit row column page record question example turn message memory"""
        ),
    )
)
_UNITS = spaced("millisecond second minute hour day kb mb gb week month year")
_UNIT_WORDS = _UNITS | frozenset(map(stem, _UNITS))
_LIMITS = frozenset(
    map(
        stem,
        spaced(
            """only except unless until deprecated formerly obsolete wrong outdated removed reverted
            but however temporarily 只 除"""
        ),
    )
)


def judge(older: Said, newer: Said, cosine: float | None = None) -> Likeness:
    """How `newer` stands to `older`. `cosine` of their vectors, where it is known."""
    if max(len(older.content), len(newer.content)) > MAX_LENGTH:
        return Likeness(Verdict.SIMILAR, "too long to be one statement")
    apart, may_contradict = _apart(older, newer, cosine), _may_contradict(older, newer, cosine)
    if apart and not may_contradict:
        return Likeness(Verdict.SIMILAR, apart)
    one, two = statement(older.content), statement(newer.content)
    against = _contradiction(one, two)
    if against and may_contradict:
        return Likeness(Verdict.CONTRADICTING, against, valued=against == _other_value(one, two))
    if against or apart:
        return Likeness(Verdict.SIMILAR, against or apart or "")
    if _same(one, two):
        return Likeness(Verdict.DUPLICATE, "the same content words, numbers, names and negations")
    if _adds(one, two):
        return Likeness(Verdict.REFINED, "the newer one says the same and more", "newer")
    if _adds(two, one):
        return Likeness(Verdict.DUPLICATE, "the older one says the same and more", "older")
    return Likeness(Verdict.SIMILAR, "content words are left over")


def _may_contradict(older: Said, newer: Said, cosine: float | None) -> bool:
    kinds = {older.kind, newer.kind}
    return (
        max(len(older.content), len(newer.content)) <= MAX_CLAIM
        and not kinds & _NEVER_CONTRADICTED
        and _periods_meet(older, newer)
        and (cosine is None or cosine >= CONTRADICT_COSINE)
    )


def _apart(older: Said, newer: Said, cosine: float | None) -> str | None:
    """Why two memories never merge, whatever they say."""
    if {older.kind, newer.kind} & _NEVER_MERGED:
        return "memories of this kind never merge"
    if older.kind is not newer.kind:
        return "of different kinds"
    if older.key is not None and newer.key is not None and older.key != newer.key:
        return "under different keys"
    if older.files and newer.files and not older.files & newer.files:
        return "about different files"
    if not _periods_meet(older, newer):
        return "true at different times"
    if cosine is not None and cosine < MERGE_COSINE:
        return "far apart in meaning"
    return None


def _periods_meet(older: Said, newer: Said) -> bool:
    """Whether there is a moment at which both were true; an open end has no bound."""
    for one, two in ((older, newer), (newer, older)):
        if one.valid_to and two.valid_from and one.valid_to <= two.valid_from:
            return False
    return True


def _same(one: Statement, two: Statement) -> bool:
    """The same words, in whatever order where the order says nothing."""
    return (
        len(one.bag) >= MIN_WORDS
        and sorted(one.words) == sorted(two.words)
        and _denials(one) == _denials(two)
        and not _turned_round(one, two)
        and not (one.after != two.after and _markers_differ(one, two))
    )


def _denials(said: Statement) -> list[str]:
    return sorted(clause[0] for clause in said.denied if clause)


def _turned_round(one: Statement, two: Statement) -> bool:
    """Two words changed places and nothing else did: who does it to whom is another."""
    moved = [(a, b) for a, b in zip(one.words, two.words, strict=True) if a != b]
    return len(moved) == 2 and moved[0] == moved[1][::-1]


def _markers_differ(one: Statement, two: Statement) -> bool:
    """A marker that both use points at different words."""
    both = [m for m in one.after if one.after[m] and two.after[m]]
    return any(one.after[m] != two.after[m] for m in both)


def _adds(less: Statement, more: Statement) -> bool:
    """`more` begins with all that `less` says, and goes on where a clause may."""
    size = len(less.words)
    rest = more.words[size:]
    if len(less.bag) < MIN_WORDS or not rest or more.words[:size] != less.words:
        return False
    goes_on = size in more.breaks or any(letter.isdigit() for letter in rest[0])
    kept = _denials(less) == [d for d in _denials(more) if d in less.bag]
    limited = (_LIMITS & set(rest)) or (more.replaced & less.bag)
    return goes_on and kept and not limited


def _contradiction(one: Statement, two: Statement) -> str | None:
    """Why `two` cannot be true beside `one`, where a rule says so."""
    rules = (_replacement, _denial, _opposite, _other_value)
    return next((why for rule in rules if (why := rule(one, two))), None)


def _replacement(one: Statement, two: Statement) -> str | None:
    gone = (two.replaced & one.bag) - one.replaced - {d for c in one.denied for d in c[:1]}
    shared = one.bag & two.bag
    if gone and len(shared) * 2 >= len(one.bag):
        return f"the newer one replaces {_listed(gone)}"
    return None


def _denial(one: Statement, two: Statement) -> str | None:
    """One of them denies what the other says; words are left over on one side at most."""
    if one.bag - two.bag and two.bag - one.bag:
        return None
    for yes, no, who in ((one, two, "newer"), (two, one, "older")):
        for clause in no.denied:
            if clause and _denies(yes, no, clause):
                return f"the {who} one denies {clause[0]}"
    return None


def _denies(yes: Statement, no: Statement, clause: tuple[str, ...]) -> bool:
    word = clause[0]
    if word not in yes.bag or word in _denials(yes):
        return False
    affirmed = no.words.count(word) > sum(c.count(word) for c in no.denied)
    return not affirmed or yes.bag <= set(clause)


def _opposite(one: Statement, two: Statement) -> str | None:
    pair = (one.bag - two.bag) | (two.bag - one.bag)
    if pair in _OPPOSITES and len(one.bag & two.bag) >= MIN_WORDS - 1:
        return f"{_listed(pair)} are opposites"
    return None


def _other_value(one: Statement, two: Statement) -> str | None:
    """The same parameter with another number: all words before and after it are the same."""
    changed = list(_changes(one.words, two.words[: len(one.words)]))
    if len(two.words) < len(one.words) or not changed:
        return None
    numbers = [(place, a, b) for place, a, b in changed if _is_value(a) and _is_value(b)]
    units = [(a, b) for _, a, b in changed if {a, b} <= _UNIT_WORDS]
    if len(numbers) != 1 or len(numbers) + len(units) != len(changed):
        return None
    place, a, b = numbers[0]
    if (place and one.words[place - 1] in _NUMBERED) or len(one.bag) < MIN_WORDS:
        return None
    return f"{a} became {b}"


def _changes(one: tuple[str, ...], two: tuple[str, ...]) -> Iterator[tuple[int, str, str]]:
    for place, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            yield place, a, b


def _is_value(word: str) -> bool:
    """A number that counts or measures; one with a leading zero names."""
    return bool(NUMBER.fullmatch(word)) and not (len(word) > 1 and word[0] == "0" != word[1] != ".")


def _listed(words: frozenset[str] | set[str]) -> str:
    named = sorted(words, key=lambda word: (not is_name(word), word))
    return " and ".join(named[:3])
