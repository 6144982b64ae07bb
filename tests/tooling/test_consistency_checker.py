"""The chaos run's consistency checker finds planted violations and no others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import aiohttp
import pytest

from chaos.clients import Client, Log, OwnMemory
from chaos.history import Action, ClientCall, FinalMemory, Outcome, ReadResult, State, violations

A1, A2, A3, SAID, OTHER = "mkax0x1", "mkax0x2", "mkax0x3", "mkax0x4", "mkbx0x1"
COMMIT = "c0ffee"
CALLS = [
    ClientCall(Action.REMEMBER, "a", A1, Outcome.DONE, memory="m1", path="src/a.py", ended=1.0),
    ClientCall(Action.REMEMBER, "a", A2, Outcome.DONE, memory="m2", ended=2.0),
    ClientCall(Action.EDIT, "a", A3, Outcome.DONE, memory="m2", ended=3.0),
    ClientCall(Action.LINK, "a", "mkax0x5", Outcome.DONE, memory="m1", other="m2"),
    ClientCall(Action.SAY, "a", SAID, Outcome.DONE),
    ClientCall(Action.REPLACE, "a", "mkax0x6", Outcome.DONE, memory="m3", key="shared"),
    ClientCall(Action.CHANGE, "a", COMMIT, Outcome.DONE, path="src/a.py", began=4.0, ended=5.0),
    ClientCall(Action.REMEMBER, "a", "mkax0x7", Outcome.UNKNOWN),
    ClientCall(Action.REMEMBER, "a", "mkax0x8", Outcome.REFUSED),
    ClientCall(Action.REMEMBER, "a", "mkax0x9", Outcome.DONE, memory="m4"),
    ClientCall(Action.FORGET, "a", "mkax0x10", Outcome.DONE, memory="m4"),
    ClientCall(Action.JUDGE, "a", "mkax0x11", Outcome.DONE, memory="m2"),
    ClientCall(Action.JUDGE, "a", "mkax0x12", Outcome.DONE, memory="m2", changed=False),
    ClientCall(Action.START, "a", "mkax0x13", Outcome.DONE),
    ClientCall(Action.KEEP, "a", "mkax0x14", Outcome.DONE, key="last-0"),
    ClientCall(Action.KEEP, "a", "mkax0x15", Outcome.DONE, key="last-0"),
    ClientCall(Action.KEEP, "a", "mkax0x16", Outcome.REFUSED, key="last-0"),
]
STATE = State(
    {
        "m1": FinalMemory("active", A1, (A1,)),
        "m2": FinalMemory("active", A3, (A2, A3)),
        "m3": FinalMemory("active", "mkax0x6", ("mkax0x6",), "shared"),
        "m9": FinalMemory("active", f"made of {SAID}", (SAID,)),
    },
    Counter({("m1", "m2"): 1}),
    Counter({SAID: 1}),
    frozenset(),
    Counter({("m1", COMMIT, "src/a.py"): 1}),
    Counter({COMMIT: 1}),
    Counter({"mkax0x11": 1}),
    Counter({"mkax0x13": 1}),
    {"last-0": (2, "mkax0x15")},
)


def _violated_rules(state: State = STATE, *reads: ReadResult) -> list[str]:
    return [violation.rule for violation in violations(CALLS, reads, {"a": state})]


def test_a_consistent_history_is_accepted() -> None:
    landed = STATE.memories | {"m5": FinalMemory("active", "mkax0x7", ("mkax0x7",))}
    told_anew = STATE.memories | {
        "m9": FinalMemory("active", SAID, (SAID, "what came after", SAID))
    }
    assert _violated_rules() == []
    assert _violated_rules(replace(STATE, memories=landed)) == []
    assert _violated_rules(replace(STATE, memories=told_anew)) == []
    assert _violated_rules(STATE, ReadResult("a", frozenset({A1, A2}), A1)) == []


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("lost", {"m1": None}),
        ("lost", {"m2": FinalMemory("active", A3, (A3,))}),
        ("undone", {"m2": FinalMemory("active", A2, (A2, A3, A2))}),
        ("not forgotten", {"m4": FinalMemory("active", "mkax0x9", ("mkax0x9",))}),
        ("doubled", {"m6": FinalMemory("active", f"again {A1}", (f"again {A1}",))}),
        ("doubled", {"m6": FinalMemory("active", f"made of {SAID}", (SAID,))}),
        ("written again", {"m2": FinalMemory("active", A3, (A2, A3, "another's", A3))}),
        ("invented", {"m6": FinalMemory("active", "mkax0x8", ("mkax0x8",))}),
        ("invented", {"m6": FinalMemory("active", "mkax7x7", ("mkax7x7",))}),
        ("stored by another tenant", {"m6": FinalMemory("active", OTHER, (OTHER,))}),
        ("key", {"m3": FinalMemory("superseded", "mkax0x6", ("mkax0x6",), "shared")}),
    ],
)
def test_a_memory_in_a_wrong_state_is_reported(
    rule: str, changed: dict[str, FinalMemory | None]
) -> None:
    memories = {**STATE.memories, **changed}
    left = {memory: kept for memory, kept in memories.items() if kept}
    assert rule in _violated_rules(replace(STATE, memories=left))


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("link", {"links": Counter()}),
        ("link", {"links": Counter({("m1", "m2"): 2})}),
        ("turn", {"turns": Counter()}),
        ("turn", {"turns": Counter({SAID: 2})}),
        ("undigested", {"undigested": frozenset({SAID})}),
        ("change", {"changes": Counter()}),
        ("not marked", {"marks": Counter()}),
        ("mark", {"marks": Counter({("m1", COMMIT, "src/a.py"): 2})}),
        ("judgement", {"reasons": Counter()}),
        ("judgement", {"reasons": Counter({"mkax0x11": 2})}),
        ("session", {"sessions": Counter()}),
        ("session", {"sessions": Counter({"mkax0x13": 2})}),
        ("vault", {"vault": {}}),
        ("vault", {"vault": {"last-0": (3, "mkax0x15")}}),
        ("vault", {"vault": {"last-0": (2, "mkax0x14")}}),
    ],
)
def test_links_turns_changes_reviews_sessions_and_entries_count_once(
    rule: str, changed: dict[str, Any]
) -> None:
    assert rule in _violated_rules(replace(STATE, **changed))


def test_the_newest_change_of_a_file_must_be_marked_and_covers_earlier_ones() -> None:
    later = ClientCall(
        Action.CHANGE, "a", "decade", Outcome.DONE, path="src/a.py", began=6.0, ended=7.0
    )
    of_later = Counter({("m1", later.marker, later.path): 1})
    changes = Counter({COMMIT: 1, later.marker: 1})
    for marks, found in ((of_later, []), (STATE.marks, ["not marked"])):
        state = replace(STATE, marks=marks, changes=changes)
        told = violations([*CALLS, later], [], {"a": state})
        assert [violation.rule for violation in told] == found


def test_foreign_reads_and_unread_writes_are_reported() -> None:
    assert _violated_rules(STATE, ReadResult("b", frozenset({A1}))) == ["seen by another tenant"]
    assert _violated_rules(STATE, ReadResult("a", frozenset({A2}), A1)) == ["not read back"]


class _UnansweredClient(Client):
    async def _call_until_answered(self, *asked: Any, **more: Any) -> tuple[int, dict[str, Any]]:
        return 0, {}


async def test_an_unanswered_edit_is_unknown_and_nothing_is_expected_of_it() -> None:
    async with aiohttp.ClientSession() as http:
        client = _UnansweredClient(http, "", "", "a", 0, Log(), Random(1), [OwnMemory("m1", A1, 1)])
        await client.edit()
        await client.read()
    [call] = client.log.calls
    assert (call.action, call.outcome, call.memory) == (Action.EDIT, Outcome.UNKNOWN, "m1")
    assert client.log.reads == []
