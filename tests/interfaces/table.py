"""The operations-by-interface table of docs/reference/interfaces.md."""

from __future__ import annotations

from tests.interfaces.activity_cases import WORK_CASES
from tests.interfaces.admin_cases import ADMIN_CASES
from tests.interfaces.case import DOORS
from tests.interfaces.engine_cases import ENGINE_CASES
from tests.interfaces.memory_and_graph_cases import MEMORY_CASES

CASES = (*MEMORY_CASES, *WORK_CASES, *ADMIN_CASES, *ENGINE_CASES)


def interfaces_table() -> str:
    """Every operation as a row of Markdown, and why some cells are empty."""
    head = f"| operation | {' | '.join(DOORS)} |\n|{'---|' * (len(DOORS) + 1)}\n"
    rows = "".join(_row(case.operation, case.names) for case in CASES)
    why = [
        f"- `{case.operation}` is not available over {door}: {reason}.\n"
        for case in CASES
        for door, reason in case.empty.items()
    ]
    return f"{head}{rows}\n{''.join(why)}"


def _row(operation: str, names: dict[str, str]) -> str:
    cells = (f"`{one}`" if one else "" for one in names.values())
    return f"| {operation} | {' | '.join(cells)} |\n"
