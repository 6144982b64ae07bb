"""The operations-by-interface table is complete."""

from __future__ import annotations

from reverie.contracts.operations import OPERATIONS, SPECIAL_OPERATIONS
from tests.interfaces.case import DOORS
from tests.interfaces.table import CASES

MOST_EMPTY = 10
FOR_EVERYBODY = {
    *("remember", "recall", "context", "forget", "get_memory", "list_memories", "feedback"),
    *("archive", "restore", "erase"),
    *("link", "unlink", "subgraph", "impact", "graph_stats", "stale", "health", "run_maintenance"),
    *("list_tasks", "update_task", "claim_task", "list_sessions", "session_start", "session_end"),
    *("append_turns", "correct_session", "preflow", "dream", "history", "rollback", "provenance"),
    *("watch_memories", "export", "import", "list_skills", "replay", "add_fact"),
}
"""What an agent and its user work with: no door may lack it."""


def test_the_table_lists_every_operation_once() -> None:
    names = [case.operation for case in CASES]
    assert sorted(names) == sorted(one.name for one in (*OPERATIONS, *SPECIAL_OPERATIONS))


def test_few_cells_are_empty_and_each_states_a_reason() -> None:
    empty = {(case.operation, door): why for case in CASES for door, why in case.empty.items()}
    print(f"{len(CASES)} operations, {len(CASES) * len(DOORS)} cells, {len(empty)} empty")
    assert len(empty) <= MOST_EMPTY
    assert all(door in DOORS and len(why.split()) > 5 for (_, door), why in empty.items())
    assert {operation for operation, _ in empty}.isdisjoint(FOR_EVERYBODY)
