"""The recorded history of client calls, and the consistency checks on it.

In the manner of Jepsen: every call is noted as done (acknowledged), refused (answered with an
error that changes nothing) or unknown (no answer). In the end the whole state is read and held
against the notes: what was acknowledged is there, once; what was refused is not; what is unknown
may be there, once; and nothing of one tenant is ever seen by another.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

MARKER = re.compile(r"mk[a-z]+x[0-9]+x[0-9]+")
"""A word that stands for one call: the tenant's letters, its client, its number."""


class Outcome(StrEnum):
    """What a client knows of a call it made."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Action(StrEnum):
    """What a client may do."""

    REMEMBER = "remember"
    EDIT = "edit"
    REPLACE = "replace"
    FORGET = "forget"
    LINK = "link"
    UNLINK = "unlink"
    SAY = "say"
    CHANGE = "change"
    JUDGE = "judge"
    KEEP = "keep"
    START = "start"


_WRITING = frozenset({Action.REMEMBER, Action.EDIT, Action.REPLACE})


@dataclass(frozen=True)
class ClientCall:
    """One call: its marker stands in what it writes; `memory` and `other` are ids, `key` a key,
    `path` the file it speaks of, `changed` whether its answer says so; when it began and ended, in
    seconds of one clock."""

    action: Action
    tenant: str
    marker: str
    outcome: Outcome
    memory: str = ""
    other: str = ""
    key: str = ""
    path: str = ""
    changed: bool = True
    began: float = 0.0
    ended: float = 0.0


@dataclass(frozen=True)
class ReadResult:
    """What a read showed a tenant: the markers in it, and one it had to show; `detail` describes
    one that it did not show."""

    tenant: str
    markers: frozenset[str]
    expected: str = ""
    detail: str = ""


@dataclass(frozen=True)
class FinalMemory:
    """A memory at the end: its status, what it says, what it ever said, its key."""

    status: str
    content: str
    contents: tuple[str, ...]
    key: str = ""


@dataclass(frozen=True)
class State:
    """All that a tenant holds at the end. Links by both ends, turns, sessions and the reasons of
    changes by their marker, marks by memory, commit and path, changes by their commit, entries of
    the vault by their key: the version, and the value."""

    memories: dict[str, FinalMemory] = field(default_factory=dict)
    links: Counter[tuple[str, str]] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    undigested: frozenset[str] = frozenset()
    marks: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    sessions: Counter[str] = field(default_factory=Counter)
    vault: dict[str, tuple[int, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Violation:
    """Something that must hold, and does not."""

    rule: str
    about: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.about}"


def violations(
    calls: Iterable[ClientCall], reads: Iterable[ReadResult], states: dict[str, State]
) -> list[Violation]:
    """Everything that does not hold; empty where all is well."""
    by_tenant: dict[str, list[ClientCall]] = defaultdict(list)
    for call in calls:
        by_tenant[call.tenant].append(call)
    found = list(_leaks(reads))
    for tenant, state in states.items():
        done = by_tenant[tenant]
        for rule in RULES:
            found += rule(done, state)
        found += _foreign_memories(tenant, state)
    return found


def markers_in(text: str) -> frozenset[str]:
    """The markers that a text holds."""
    return frozenset(MARKER.findall(text))


def owner(marker: str) -> str:
    """The tenant whose marker it is."""
    return marker[2 : marker.index("x")]


def _leaks(reads: Iterable[ReadResult]) -> Iterator[Violation]:
    for read in reads:
        for marker in read.markers:
            if owner(marker) != read.tenant:
                yield Violation("seen by another tenant", f"{read.tenant} saw {marker}")
        if read.expected and read.expected not in read.markers:
            yield Violation("not read back", f"{read.expected} {read.detail}".strip())


def _foreign_memories(tenant: str, state: State) -> Iterator[Violation]:
    for memory, stored in state.memories.items():
        for marker in markers_in(" ".join(stored.contents)):
            if owner(marker) != tenant:
                yield Violation("stored by another tenant", f"{marker} in {memory} of {tenant}")


def _lost(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    """What was acknowledged is what is there, and the last of it is what it says."""
    forgotten = _forgotten(calls)
    for call in calls:
        if call.outcome != Outcome.DONE or call.action not in _WRITING or call.memory in forgotten:
            continue
        stored = state.memories.get(call.memory)
        if stored is None or not any(call.marker in content for content in stored.contents):
            yield Violation("lost", f"{call.action} {call.marker} of {call.memory}")
    for memory, last in _last_words(calls).items():
        stored = state.memories.get(memory)
        if stored and not any(marker in stored.content for marker in last):
            yield Violation("undone", f"{memory} says none of {sorted(last)}")
    for memory, outcome in forgotten.items():
        if outcome == Outcome.DONE and memory in state.memories:
            yield Violation("not forgotten", memory)


def _forgotten(calls: list[ClientCall]) -> dict[str, Outcome]:
    """The memories that were forgotten, or may have been."""
    asked = (d for d in calls if d.action == Action.FORGET and d.outcome != Outcome.REFUSED)
    return {call.memory: call.outcome for call in asked}


def _last_words(calls: list[ClientCall]) -> dict[str, set[str]]:
    """By memory, the markers that its text may hold: of the last acknowledged, or unknown since."""
    last: dict[str, set[str]] = {}
    for call in calls:
        if call.action not in _WRITING or not call.memory:
            continue
        if call.outcome == Outcome.DONE:
            last[call.memory] = {call.marker}
        elif call.outcome == Outcome.UNKNOWN:
            last.setdefault(call.memory, set()).add(call.marker)
    return last


def _duplicated(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    """Each marker is the word of one memory at most; those that dreams made of turns aside."""
    written = {call.marker for call in calls if call.action != Action.SAY}
    holders: dict[str, list[str]] = defaultdict(list)
    for memory, stored in state.memories.items():
        for marker in markers_in(" ".join(stored.contents)) & written:
            holders[marker].append(memory)
    for marker, memories in holders.items():
        if len(memories) > 1:
            yield Violation("doubled", f"{marker} in {sorted(memories)}")
    for memory, stored in state.memories.items():
        yield from _rewritten(memory, [markers_in(text) & written for text in stored.contents])
    contents = Counter(
        (stored.key, stored.content)
        for stored in state.memories.values()
        if stored.status == "active"
    )
    for (_, content), times in contents.items():
        if times > 1:
            yield Violation("doubled", f"{times} times {content[:60]!r}")


def _rewritten(memory: str, texts: Iterable[frozenset[str]]) -> Iterator[Violation]:
    """A marker that a memory lost and has again was written by a change that was made twice."""
    over: set[str] = set()
    before: frozenset[str] = frozenset()
    for now in texts:
        for marker in sorted(now & over):
            yield Violation("written again", f"{marker} in {memory}")
        over |= before - now
        before = now


def _invented(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    refused = {call.marker for call in calls if call.outcome == Outcome.REFUSED}
    issued = {call.marker for call in calls}
    for memory, stored in state.memories.items():
        for marker in markers_in(" ".join(stored.contents)):
            if marker in refused or marker not in issued:
                yield Violation("invented", f"{marker} in {memory}")


def _keys(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    """A key has one active memory, once anything under it was acknowledged."""
    done = {d.key for d in calls if d.action == Action.REPLACE and d.outcome == Outcome.DONE}
    active = Counter(stored.key for stored in state.memories.values() if stored.status == "active")
    for key in done:
        if active[key] != 1:
            yield Violation("key", f"{key} has {active[key]} active memories")


def _links(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    """The last thing that is known of a link is how it is; it is there once at most."""
    known: dict[tuple[str, str], set[int]] = {}
    for call in calls:
        if call.action not in {Action.LINK, Action.UNLINK}:
            continue
        wanted, ends = int(call.action == Action.LINK), (call.memory, call.other)
        if call.outcome == Outcome.DONE:
            known[ends] = {wanted}
        elif call.outcome == Outcome.UNKNOWN:
            known[ends] = known.get(ends, {0}) | {wanted}
    forgotten = set(_forgotten(calls))
    for ends, wanted_counts in known.items():
        if not forgotten.intersection(ends) and state.links[ends] not in wanted_counts:
            yield Violation("link", f"{ends} is there {state.links[ends]} times")


def _turns(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    for call in calls:
        if call.action != Action.SAY:
            continue
        times = state.turns[call.marker]
        if times > 1 or (call.outcome == Outcome.DONE and times != 1):
            yield Violation("turn", f"{call.marker} is there {times} times")
        if call.outcome == Outcome.REFUSED and times:
            yield Violation("invented", f"turn {call.marker}")
    for marker in state.undigested:
        yield Violation("undigested", marker)


def _sessions(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    for call in calls:
        if call.action == Action.START:
            yield from _check_count("session", call, state.sessions[call.marker])


def _reviews(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    """What judged a memory is the reason of one change of it, or of none where it was so before."""
    forgotten = _forgotten(calls)
    for call in calls:
        if (
            call.action != Action.JUDGE
            or call.memory in forgotten
            or call.memory not in state.memories
        ):
            continue
        if call.changed or call.outcome != Outcome.DONE:
            yield from _check_count("judgement", call, state.reasons[call.marker])


def _check_count(what: str, call: ClientCall, times: int) -> Iterator[Violation]:
    """Once where it was acknowledged, never where it was refused, else once at most."""
    if times > 1 or (call.outcome == Outcome.DONE and times != 1):
        yield Violation(what, f"{call.marker} is there {times} times")
    if call.outcome == Outcome.REFUSED and times:
        yield Violation("invented", f"{what} {call.marker}")


def _vault(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    """An entry counts each acknowledged value once, and holds the last one."""
    by_key: dict[str, list[ClientCall]] = defaultdict(list)
    for call in calls:
        if call.action == Action.KEEP and call.outcome != Outcome.REFUSED:
            by_key[call.key].append(call)
    for key, stored in by_key.items():
        done = [call.marker for call in stored if call.outcome == Outcome.DONE]
        version, value = state.vault.get(key, (0, ""))
        if not len(done) <= version <= len(stored):
            yield Violation("vault", f"{key} counts {version}, of {len(done)} to {len(stored)}")
        last = {*done[-1:], *(call.marker for call in stored if call.outcome == Outcome.UNKNOWN)}
        if done and value not in last:
            yield Violation("vault", f"{key} holds {value}, none of {sorted(last)}")


def _events(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    for call in calls:
        if call.action != Action.CHANGE:
            continue
        times = state.changes[call.marker]
        if times > 1 or (call.outcome == Outcome.DONE and times != 1):
            yield Violation("change", f"{call.marker} is there {times} times")
    for mark, times in state.marks.items():
        if times > 1:
            yield Violation("mark", f"{mark} is there {times} times")
    yield from _missing_marks(calls, state)


def _missing_marks(calls: list[ClientCall], state: State) -> Iterator[Violation]:
    """A memory of a file that changed after it was learned is doubted, unless it was rewritten.

    Of several mild suspicions about a file only one stands, the newest where they are as strong
    (decision 15): so a later change's mark stands for those that came before its anchor did.
    """
    changes: dict[str, list[ClientCall]] = defaultdict(list)
    for call in calls:
        if call.action == Action.CHANGE and call.outcome == Outcome.DONE:
            changes[call.path].append(call)
    touched = Counter(call.memory for call in calls if call.action in {*_WRITING, Action.JUDGE})
    for call in calls:
        stored = state.memories.get(call.memory)
        if call.action != Action.REMEMBER or call.outcome != Outcome.DONE or stored is None:
            continue
        if stored.status != "active" or touched[call.memory] > 1:
            continue
        marked = [
            change.ended
            for change in changes[call.path]
            if state.marks[(call.memory, change.marker, call.path)]
        ]
        newest = max(marked, default=0.0)
        for change in changes[call.path]:
            if change.began > max(call.ended, newest):
                yield Violation("not marked", f"{call.memory} after {change.marker}")


RULES = (
    _lost, _duplicated, _invented, _keys, _links, _turns, _events, _sessions, _reviews, _vault,
)  # fmt: skip
