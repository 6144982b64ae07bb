"""Detection of duplicate, refined and contradicting memories by rules over normalized words.

Duplicates and refinements are merged, so the rules prefer to miss one: every number, name and
negation must agree, and no content word may remain. Vector similarity can only forbid a merge,
never cause one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reverie.domain.core.kinds import ANCHOR_KINDS, Kind
from reverie.domain.text.characters import word_set
from reverie.domain.text.normalization import (
    NUMBER,
    NormalizedStatement,
    is_identifier,
    normalize_statement,
    stem,
)


class DuplicateVerdict(StrEnum):
    """The relation of two memories."""

    DUPLICATE = "duplicate"
    REFINED = "refined"
    CONTRADICTING = "contradicting"
    SIMILAR = "similar"


@dataclass(frozen=True)
class ComparedMemory:
    """The fields of a memory that the rules use; `files` are anchors not named in its text."""

    content: str
    kind: Kind = Kind.CONTEXT
    key: str | None = None
    pinned: bool = False
    files: frozenset[str] = field(default_factory=frozenset)
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True)
class MemoryComparison:
    """A verdict and its reason; `fuller_side`: the side with more content, if one has more.

    `differs_by_value`: they differ only by a value, so they form a series with other values.
    `replaces`: the newer one says that it takes the place of what the older one says.
    """

    verdict: DuplicateVerdict
    reason: str
    fuller_side: str | None = None
    differs_by_value: bool = False
    replaces: bool = False


MERGEABLE_VERDICTS = frozenset({DuplicateVerdict.DUPLICATE, DuplicateVerdict.REFINED})
# Tasks and skills have state of their own; sessions and past events each belong to one time.
_NEVER_MERGED = ANCHOR_KINDS | {Kind.TASK, Kind.SKILL, Kind.SESSION}
_NEVER_CONTRADICTED = _NEVER_MERGED | {Kind.HISTORICAL, Kind.BUG}
MIN_WORDS = 2
# Characters. A longer text is no statement, and taking it apart takes the square of its length.
MAX_COMPARED_CHARS = 8192
# A longer text has many statements: two such texts always contain words that contradict each other.
MAX_CONTRADICTION_CHARS = 600
# Below these cosines, equal words are chance. Measured: benchmarks/quality/duplicates.py.
MIN_MERGE_COSINE = 0.7
MIN_CONTRADICTION_COSINE = 0.6
# A replacement names what it replaces, and may say much else besides.
MIN_REPLACEMENT_COSINE = 0.45
_OPPOSITES = frozenset(
    frozenset(map(stem, pair.split("/")))
    for pair in word_set(
        """enabled/disabled required/optional required/forbidden allowed/forbidden
        allowed/denied allowed/prohibited public/private synchronously/asynchronously
        synchronous/asynchronous sync/async true/false mutable/immutable included/excluded
        accepted/rejected mandatory/optional manual/automatic manually/automatically
        stateful/stateless tabs/spaces increased/decreased strict/lenient blocking/nonblocking
        ascending/descending"""
    )
)
# A number after one of these names a thing; it is no value that could change.
_NUMBERED_NOUNS = frozenset(
    map(
        stem,
        word_set(
            """migration issue bug pr ticket error step test case phase task chapter sprint line
            shard worker replica server host instance stage level tier day week release rfc adr
            milestone option attempt requirement epic story number fact item entry note part version
            run build round commit row column page record question example turn message memory"""
        ),
    )
)
_UNIT_NOUNS = word_set("millisecond second minute hour day kb mb gb week month year")
_UNIT_WORDS = _UNIT_NOUNS | frozenset(map(stem, _UNIT_NOUNS))
_USING_WORDS = frozenset(map(stem, word_set("use uses run runs adopted rely relies chose"))) | (
    word_set("我 们 用 使 采 跑 做 作 为")
)
_LIMITING_WORDS = frozenset(
    map(
        stem,
        word_set(
            """only except unless until deprecated formerly obsolete wrong outdated removed reverted
            but however temporarily 只 除"""
        ),
    )
)


def compare_memories(
    older: ComparedMemory, newer: ComparedMemory, cosine: float | None = None
) -> MemoryComparison:
    """Compares `newer` with `older`. `cosine` is that of their vectors, if known."""
    if max(len(older.content), len(newer.content)) > MAX_COMPARED_CHARS:
        return MemoryComparison(DuplicateVerdict.SIMILAR, "too long to be one statement")
    merge_obstacle = _find_merge_obstacle(older, newer, cosine)
    may_contradict = (
        max(len(older.content), len(newer.content)) <= MAX_CONTRADICTION_CHARS
        and not {older.kind, newer.kind} & _NEVER_CONTRADICTED
        and _validity_overlaps(older, newer)
        and (cosine is None or cosine >= MIN_REPLACEMENT_COSINE)
    )
    if merge_obstacle and not may_contradict:
        return MemoryComparison(DuplicateVerdict.SIMILAR, merge_obstacle)
    older_statement = normalize_statement(older.content)
    newer_statement = normalize_statement(newer.content)
    replacement = _find_replacement(older_statement, newer_statement)
    rules = (_find_negation, _find_opposites, _find_changed_value)
    reasons = (rule(older_statement, newer_statement) for rule in rules)
    contradiction = replacement or next(filter(None, reasons), None)
    is_near = cosine is None or cosine >= MIN_CONTRADICTION_COSINE
    if contradiction and may_contradict and (replacement or is_near):
        return MemoryComparison(
            DuplicateVerdict.CONTRADICTING,
            contradiction,
            differs_by_value=contradiction == _find_changed_value(older_statement, newer_statement),
            replaces=replacement is not None,
        )
    if contradiction or merge_obstacle:
        return MemoryComparison(DuplicateVerdict.SIMILAR, contradiction or merge_obstacle or "")
    if _is_same_statement(older_statement, newer_statement):
        return MemoryComparison(
            DuplicateVerdict.DUPLICATE, "the same content words, numbers, names and negations"
        )
    if _is_extension(older_statement, newer_statement):
        return MemoryComparison(
            DuplicateVerdict.REFINED, "the newer one says the same and more", "newer"
        )
    if _is_extension(newer_statement, older_statement):
        return MemoryComparison(
            DuplicateVerdict.DUPLICATE, "the older one says the same and more", "older"
        )
    return MemoryComparison(DuplicateVerdict.SIMILAR, "content words are left over")


def _find_merge_obstacle(
    older: ComparedMemory, newer: ComparedMemory, cosine: float | None
) -> str | None:
    """Returns why two memories never merge, whatever their text."""
    if {older.kind, newer.kind} & _NEVER_MERGED:
        return "memories of this kind never merge"
    if older.kind is not newer.kind:
        return "of different kinds"
    if older.key is not None and newer.key is not None and older.key != newer.key:
        return "under different keys"
    if older.files and newer.files and not older.files & newer.files:
        return "about different files"
    if not _validity_overlaps(older, newer):
        return "true at different times"
    if cosine is not None and cosine < MIN_MERGE_COSINE:
        return "far apart in meaning"
    return None


def _validity_overlaps(older: ComparedMemory, newer: ComparedMemory) -> bool:
    """Returns whether both were true at some time; an open end has no bound."""
    for first, second in ((older, newer), (newer, older)):
        if first.valid_to and second.valid_from and first.valid_to <= second.valid_from:
            return False
    return True


def _is_same_statement(first: NormalizedStatement, second: NormalizedStatement) -> bool:
    """Returns whether the words are equal, in any order if the order has no meaning."""
    if (
        len(first.bag) < MIN_WORDS
        or sorted(first.words) != sorted(second.words)
        or _list_negated_words(first) != _list_negated_words(second)
    ):
        return False
    # If only two words are swapped, the roles in the sentence differ.
    swapped = [(a, b) for a, b in zip(first.words, second.words, strict=True) if a != b]
    if len(swapped) == 2 and swapped[0] == swapped[1][::-1]:
        return False
    # A marker that both use must point at the same words.
    return all(
        words == second.after_marker[marker]
        for marker, words in first.after_marker.items()
        if words and second.after_marker[marker]
    )


def _list_negated_words(normalized: NormalizedStatement) -> list[str]:
    return sorted(clause[0] for clause in normalized.negated if clause)


def _is_extension(shorter: NormalizedStatement, longer: NormalizedStatement) -> bool:
    """Returns whether `longer` begins with all of `shorter` and continues at a clause border."""
    size = len(shorter.words)
    rest = longer.words[size:]
    if len(shorter.bag) < MIN_WORDS or not rest or longer.words[:size] != shorter.words:
        return False
    continues_clause = size in longer.breaks or any(char.isdigit() for char in rest[0])
    same_negations = _list_negated_words(shorter) == [
        word for word in _list_negated_words(longer) if word in shorter.bag
    ]
    is_limited = (_LIMITING_WORDS & set(rest)) or (longer.replaced & shorter.bag)
    return continues_clause and same_negations and not is_limited


def _find_replacement(older: NormalizedStatement, newer: NormalizedStatement) -> str | None:
    replaced_words = (
        (newer.replaced & older.bag)
        - older.replaced
        - {word for clause in older.negated for word in clause[:1]}
    )
    shared = older.bag & newer.bag
    is_about_it = len(shared) * 2 >= len(older.bag) or _uses_only(older, replaced_words)
    # "Use pnpm instead of npm for the app" says nothing of "Use npm for the docs".
    purposes = older.after_marker["for"], newer.after_marker["for"]
    has_other_purpose = all(purposes) and not purposes[0] & purposes[1]
    if replaced_words and is_about_it and not has_other_purpose:
        return f"the newer one replaces {_join_words(replaced_words)}"
    return None


def _uses_only(statement: NormalizedStatement, words: frozenset[str]) -> bool:
    """Whether the statement says that some of the words are used, and nothing closer: "We use Jest
    for the unit tests" and "Jest runs the tests", but neither "Use Jest snapshots" nor "opened by
    Jest"."""
    denied = {word for clause in statement.negated for word in clause}
    used, is_used = set[str](), False
    for position, word in enumerate(statement.words):
        if word in _USING_WORDS:
            is_subject = position == len(used)
            if used and used <= words - denied and (is_used or is_subject):
                return True
            used, is_used = set(), True
        elif position in statement.breaks and used:
            if is_used and used <= words - denied:
                return True
            used, is_used = {word}, False
        else:
            used.add(word)
    return is_used and bool(used) and used <= words - denied


def _find_negation(older: NormalizedStatement, newer: NormalizedStatement) -> str | None:
    """Finds a negation: one side denies the other, and at most one side has further words."""
    if older.bag - newer.bag and newer.bag - older.bag:
        return None
    for affirming, negating, side in ((older, newer, "newer"), (newer, older, "older")):
        for clause in negating.negated:
            if clause and _is_negated(affirming, negating, clause):
                return f"the {side} one denies {clause[0]}"
    return None


def _is_negated(
    affirming: NormalizedStatement, negating: NormalizedStatement, clause: tuple[str, ...]
) -> bool:
    word = clause[0]
    if word not in affirming.bag or word in _list_negated_words(affirming):
        return False
    is_affirmed = negating.words.count(word) > sum(other.count(word) for other in negating.negated)
    return not is_affirmed or affirming.bag <= set(clause)


def _find_opposites(older: NormalizedStatement, newer: NormalizedStatement) -> str | None:
    pair = (older.bag - newer.bag) | (newer.bag - older.bag)
    if pair in _OPPOSITES and len(older.bag & newer.bag) >= MIN_WORDS - 1:
        return f"{_join_words(pair)} are opposites"
    return None


def _find_changed_value(older: NormalizedStatement, newer: NormalizedStatement) -> str | None:
    """The same parameter with another number: all words before and after it are the same."""
    if len(newer.words) < len(older.words):
        return None
    pairs = enumerate(zip(older.words, newer.words, strict=False))
    changed = [(position, a, b) for position, (a, b) in pairs if a != b]
    numbers = [(position, a, b) for position, a, b in changed if _is_value(a) and _is_value(b)]
    units = [(a, b) for _, a, b in changed if {a, b} <= _UNIT_WORDS]
    if len(numbers) != 1 or len(numbers) + len(units) != len(changed):
        return None
    position, a, b = numbers[0]
    if (position and older.words[position - 1] in _NUMBERED_NOUNS) or len(older.bag) < MIN_WORDS:
        return None
    # "Rule 3: ..." is the name of what follows: another rule has another number.
    if position == 1 and {2} <= older.label_ends & newer.label_ends:
        return None
    return f"{a} became {b}"


def _is_value(word: str) -> bool:
    """A number that counts or measures; one with a leading zero names."""
    return bool(NUMBER.fullmatch(word)) and not (len(word) > 1 and word[0] == "0" != word[1] != ".")


def _join_words(words: frozenset[str] | set[str]) -> str:
    ordered = sorted(words, key=lambda word: (not is_identifier(word), word))
    return " and ".join(ordered[:3])
