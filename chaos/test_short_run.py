"""A short chaos run finds no violation."""

from __future__ import annotations

from chaos.report import report
from chaos.result import ChaosPlan, ChaosResult
from chaos.run import run_chaos
from reverie.testing.servers import TestRun

STRIKES = (
    "kill -9 of serve all+kill -9 of serve derive+kill -9 of nats-server+the embedder hangs",
    "Postgres cut off+the embedder fails",
)


async def test_every_write_acknowledged_under_faults_is_stored_exactly_once(
    test_run: TestRun,
) -> None:
    plan = ChaosPlan(
        seed=3, operations=120, faults=6, clients=2, calm=0.5, clock=False, strikes=STRIKES
    )  # fmt: skip
    result = ChaosResult(plan)
    await run_chaos(test_run.new_folder("chaos-run"), result, test_run)
    print(report(result))
    assert result.wrong == []
    assert result.log.unexpected == []
    assert result.checked
    assert result.log.acknowledged >= plan.operations
    assert result.fault_counts.total() >= plan.faults
