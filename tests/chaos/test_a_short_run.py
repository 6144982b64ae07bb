"""The short form of `make chaos`."""

from __future__ import annotations

from reverie.testing.servers import TestRun
from tests.chaos.run import Plan, break_it, report


async def test_what_clients_did_while_services_were_killed_and_cut_off_is_there_once(
    test_run: TestRun,
) -> None:
    plan = Plan(seed=3, operations=120, faults=4, clients=1, calm=1.0, clock=False)
    result = await break_it(test_run.new_folder("chaos-run"), plan)
    print(report(result))
    assert result.wrong == []
    assert result.log.strange == []
    assert result.log.acknowledged >= plan.operations
    assert result.struck.total() >= plan.faults
