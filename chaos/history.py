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
"""A word that stands for one deed: the tenant's letters, its client, its number."""


class Outcome(StrEnum):
    """What a client knows of a call it made."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Act(StrEnum):
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


_WRITING = frozenset({Act.REMEMBER, Act.EDIT, Act.REPLACE})


@dataclass(frozen=True)
class Deed:
    """One call: its marker stands in what it writes; `memory` and `other` are ids, `key` a key,
    `path` the file it speaks of, `changed` whether its answer says so; when it began and ended, in
    seconds of one clock."""

    act: Act
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
class Sight:
    """What a read showed a tenant: the markers in it, and one it had to show; `told`: what there is
    to say of one that it did not show."""

    tenant: str
    markers: frozenset[str]
    expected: str = ""
    told: str = ""


@dataclass(frozen=True)
class Kept:
    """A memory at the end: its status, what it says, what it ever said, its key."""

    status: str
    content: str
    said: tuple[str, ...]
    key: str = ""


@dataclass(frozen=True)
class State:
    """All that a tenant holds at the end. Links by both ends, turns, sessions and the reasons of
    changes by their marker, marks by memory, commit and path, changes by their commit, entries of
    the vault by their key: the version, and the value."""

    memories: dict[str, Kept] = field(default_factory=dict)
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
    deeds: Iterable[Deed], sights: Iterable[Sight], states: dict[str, State]
) -> list[Violation]:
    """Everything that does not hold; empty where all is well."""
    by_tenant: dict[str, list[Deed]] = defaultdict(list)
    for deed in deeds:
        by_tenant[deed.tenant].append(deed)
    found = list(_leaks(sights))
    for tenant, state in states.items():
        done = by_tenant[tenant]
        for rule in RULES:
            found += rule(done, state)
        found += _strangers(tenant, state)
    return found


def markers_in(text: str) -> frozenset[str]:
    """The markers that a text holds."""
    return frozenset(MARKER.findall(text))


def owner(marker: str) -> str:
    """The tenant whose marker it is."""
    return marker[2 : marker.index("x")]


def _leaks(sights: Iterable[Sight]) -> Iterator[Violation]:
    for sight in sights:
        for marker in sight.markers:
            if owner(marker) != sight.tenant:
                yield Violation("seen by another tenant", f"{sight.tenant} saw {marker}")
        if sight.expected and sight.expected not in sight.markers:
            yield Violation("not read back", f"{sight.expected} {sight.told}".strip())


def _strangers(tenant: str, state: State) -> Iterator[Violation]:
    for memory, kept in state.memories.items():
        for marker in markers_in(" ".join(kept.said)):
            if owner(marker) != tenant:
                yield Violation("kept by another tenant", f"{marker} in {memory} of {tenant}")


def _lost(deeds: list[Deed], state: State) -> Iterator[Violation]:
    """What was acknowledged is what is there, and the last of it is what it says."""
    forgotten = _forgotten(deeds)
    for deed in deeds:
        if deed.outcome != Outcome.DONE or deed.act not in _WRITING or deed.memory in forgotten:
            continue
        kept = state.memories.get(deed.memory)
        if kept is None or not any(deed.marker in said for said in kept.said):
            yield Violation("lost", f"{deed.act} {deed.marker} of {deed.memory}")
    for memory, last in _last_words(deeds).items():
        kept = state.memories.get(memory)
        if kept and not any(marker in kept.content for marker in last):
            yield Violation("undone", f"{memory} says none of {sorted(last)}")
    for memory, outcome in forgotten.items():
        if outcome == Outcome.DONE and memory in state.memories:
            yield Violation("not forgotten", memory)


def _forgotten(deeds: list[Deed]) -> dict[str, Outcome]:
    """The memories that were forgotten, or may have been."""
    asked = (d for d in deeds if d.act == Act.FORGET and d.outcome != Outcome.REFUSED)
    return {deed.memory: deed.outcome for deed in asked}


def _last_words(deeds: list[Deed]) -> dict[str, set[str]]:
    """By memory, the markers that its text may hold: of the last acknowledged, or unknown since."""
    last: dict[str, set[str]] = {}
    for deed in deeds:
        if deed.act not in _WRITING or not deed.memory:
            continue
        if deed.outcome == Outcome.DONE:
            last[deed.memory] = {deed.marker}
        elif deed.outcome == Outcome.UNKNOWN:
            last.setdefault(deed.memory, set()).add(deed.marker)
    return last


def _doubled(deeds: list[Deed], state: State) -> Iterator[Violation]:
    """Each marker is the word of one memory at most; those that dreams made of turns aside."""
    said = {deed.marker for deed in deeds if deed.act != Act.SAY}
    holders: dict[str, list[str]] = defaultdict(list)
    for memory, kept in state.memories.items():
        for marker in markers_in(" ".join(kept.said)) & said:
            holders[marker].append(memory)
    for marker, memories in holders.items():
        if len(memories) > 1:
            yield Violation("doubled", f"{marker} in {sorted(memories)}")
    for memory, kept in state.memories.items():
        yield from _said_again(memory, [markers_in(text) & said for text in kept.said])
    contents = Counter(
        (kept.key, kept.content) for kept in state.memories.values() if kept.status == "active"
    )
    for (_, content), times in contents.items():
        if times > 1:
            yield Violation("doubled", f"{times} times {content[:60]!r}")


def _said_again(memory: str, texts: Iterable[frozenset[str]]) -> Iterator[Violation]:
    """A marker that a memory lost and has again was written by a change that was made twice."""
    over: set[str] = set()
    before: frozenset[str] = frozenset()
    for now in texts:
        for marker in sorted(now & over):
            yield Violation("written again", f"{marker} in {memory}")
        over |= before - now
        before = now


def _invented(deeds: list[Deed], state: State) -> Iterator[Violation]:
    refused = {deed.marker for deed in deeds if deed.outcome == Outcome.REFUSED}
    issued = {deed.marker for deed in deeds}
    for memory, kept in state.memories.items():
        for marker in markers_in(" ".join(kept.said)):
            if marker in refused or marker not in issued:
                yield Violation("invented", f"{marker} in {memory}")


def _keys(deeds: list[Deed], state: State) -> Iterator[Violation]:
    """A key has one active memory, once anything under it was acknowledged."""
    done = {d.key for d in deeds if d.act == Act.REPLACE and d.outcome == Outcome.DONE}
    active = Counter(kept.key for kept in state.memories.values() if kept.status == "active")
    for key in done:
        if active[key] != 1:
            yield Violation("key", f"{key} has {active[key]} active memories")


def _links(deeds: list[Deed], state: State) -> Iterator[Violation]:
    """The last thing that is known of a link is how it is; it is there once at most."""
    known: dict[tuple[str, str], set[int]] = {}
    for deed in deeds:
        if deed.act not in {Act.LINK, Act.UNLINK}:
            continue
        wanted, ends = int(deed.act == Act.LINK), (deed.memory, deed.other)
        if deed.outcome == Outcome.DONE:
            known[ends] = {wanted}
        elif deed.outcome == Outcome.UNKNOWN:
            known[ends] = known.get(ends, {0}) | {wanted}
    forgotten = set(_forgotten(deeds))
    for ends, wanted_counts in known.items():
        if not forgotten.intersection(ends) and state.links[ends] not in wanted_counts:
            yield Violation("link", f"{ends} is there {state.links[ends]} times")


def _turns(deeds: list[Deed], state: State) -> Iterator[Violation]:
    for deed in deeds:
        if deed.act != Act.SAY:
            continue
        times = state.turns[deed.marker]
        if times > 1 or (deed.outcome == Outcome.DONE and times != 1):
            yield Violation("turn", f"{deed.marker} is there {times} times")
        if deed.outcome == Outcome.REFUSED and times:
            yield Violation("invented", f"turn {deed.marker}")
    for marker in state.undigested:
        yield Violation("undigested", marker)


def _sessions(deeds: list[Deed], state: State) -> Iterator[Violation]:
    for deed in deeds:
        if deed.act == Act.START:
            yield from _counted("session", deed, state.sessions[deed.marker])


def _judgements(deeds: list[Deed], state: State) -> Iterator[Violation]:
    """What judged a memory is the reason of one change of it, or of none where it was so before."""
    forgotten = _forgotten(deeds)
    for deed in deeds:
        if deed.act != Act.JUDGE or deed.memory in forgotten or deed.memory not in state.memories:
            continue
        if deed.changed or deed.outcome != Outcome.DONE:
            yield from _counted("judgement", deed, state.reasons[deed.marker])


def _counted(what: str, deed: Deed, times: int) -> Iterator[Violation]:
    """Once where it was acknowledged, never where it was refused, else once at most."""
    if times > 1 or (deed.outcome == Outcome.DONE and times != 1):
        yield Violation(what, f"{deed.marker} is there {times} times")
    if deed.outcome == Outcome.REFUSED and times:
        yield Violation("invented", f"{what} {deed.marker}")


def _vault(deeds: list[Deed], state: State) -> Iterator[Violation]:
    """An entry counts each acknowledged value once, and holds the last one."""
    by_key: dict[str, list[Deed]] = defaultdict(list)
    for deed in deeds:
        if deed.act == Act.KEEP and deed.outcome != Outcome.REFUSED:
            by_key[deed.key].append(deed)
    for key, kept in by_key.items():
        done = [deed.marker for deed in kept if deed.outcome == Outcome.DONE]
        version, value = state.vault.get(key, (0, ""))
        if not len(done) <= version <= len(kept):
            yield Violation("vault", f"{key} counts {version}, of {len(done)} to {len(kept)}")
        last = {*done[-1:], *(deed.marker for deed in kept if deed.outcome == Outcome.UNKNOWN)}
        if done and value not in last:
            yield Violation("vault", f"{key} holds {value}, none of {sorted(last)}")


def _events(deeds: list[Deed], state: State) -> Iterator[Violation]:
    for deed in deeds:
        if deed.act != Act.CHANGE:
            continue
        times = state.changes[deed.marker]
        if times > 1 or (deed.outcome == Outcome.DONE and times != 1):
            yield Violation("change", f"{deed.marker} is there {times} times")
    for mark, times in state.marks.items():
        if times > 1:
            yield Violation("mark", f"{mark} is there {times} times")
    yield from _unmarked(deeds, state)


def _unmarked(deeds: list[Deed], state: State) -> Iterator[Violation]:
    """A memory of a file that changed after it was learned is doubted, unless it was rewritten.

    Of several mild suspicions about a file only one stands, the newest where they are as strong
    (decision 15): so a later change's mark stands for those that came before its anchor did.
    """
    changes: dict[str, list[Deed]] = defaultdict(list)
    for deed in deeds:
        if deed.act == Act.CHANGE and deed.outcome == Outcome.DONE:
            changes[deed.path].append(deed)
    touched = Counter(deed.memory for deed in deeds if deed.act in {*_WRITING, Act.JUDGE})
    for deed in deeds:
        kept = state.memories.get(deed.memory)
        if deed.act != Act.REMEMBER or deed.outcome != Outcome.DONE or kept is None:
            continue
        if kept.status != "active" or touched[deed.memory] > 1:
            continue
        marked = [
            change.ended
            for change in changes[deed.path]
            if state.marks[(deed.memory, change.marker, deed.path)]
        ]
        newest = max(marked, default=0.0)
        for change in changes[deed.path]:
            if change.began > max(deed.ended, newest):
                yield Violation("not doubted", f"{deed.memory} after {change.marker}")


RULES = (
    _lost, _doubled, _invented, _keys, _links, _turns, _events, _sessions, _judgements, _vault,
)  # fmt: skip
