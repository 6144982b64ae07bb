"""Runs the maintenance steps of due tenants under a lease, each step with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from time import monotonic
from typing import Literal, NoReturn
from uuid import UUID

import structlog

from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.runtime.observability.tracing import span
from reverie.store.maintenance.items import MaintenanceLease, MaintenanceRun, MaintenanceScope
from reverie.store.maintenance.maintenance import START_ID
from reverie_services.dream.dependencies import MaintenanceDependencies
from reverie_services.dream.digest.leases import LeaseLost, ensure_lease_held, run_with_heartbeat
from reverie_services.dream.maintenance.progress import MaintenanceProgress
from reverie_services.dream.maintenance.steps import (
    REFLECTION_STEPS,
    REVIEW_STEPS,
    STEPS,
    MaintenanceStep,
)

log = structlog.get_logger("reverie.dream")

POLL_PAUSE = 10.0
"""Seconds between two looks for a tenant that is due, and before what was not finished goes on."""


async def run_maintenance_loop(deps: MaintenanceDependencies) -> None:
    """Runs the maintenance of one due tenant after another until it is cancelled."""
    pause = min(POLL_PAUSE, deps.settings.maintenance_interval)
    while True:
        try:
            if await run_due_maintenance(deps, pause):
                continue
        # Whatever is wrong with one tenant, the others are tended.
        except ReverieError as error:
            log.warning("maintenance_postponed", reason=str(error))
        except LeaseLost:
            log.warning("maintenance_lease_lost")
        except Exception as error:
            log.exception("maintenance_failed", error=type(error).__name__)
        await asyncio.sleep(pause)


async def run_due_maintenance(deps: MaintenanceDependencies, pause: float) -> bool:
    """Maintains one tenant that is due; returns False if none is.

    Each tenant is given to one worker at a time. Unfinished work continues after a pause. Failed or
    abandoned work continues when its lease has expired, here or in another process.
    """
    settings = deps.settings
    lease = await deps.maintenance.claim_due(settings.maintenance_interval, settings.lease_seconds)
    if lease is None:
        return False
    try:
        progress = await run_with_heartbeat(_renew_lease(deps, lease), _run_leased(deps, lease))
    except asyncio.CancelledError:
        await asyncio.shield(_release_lease(deps, lease, 0.0))
        raise
    except Unavailable:
        # An unavailable dependency is not a fault of the tenant, and recovers.
        await _release_lease(deps, lease, pause)
        raise
    await deps.maintenance.release(lease, pause if progress.unfinished else None)
    return True


async def _run_leased(
    deps: MaintenanceDependencies, lease: MaintenanceLease
) -> MaintenanceProgress:
    """Tends the tenant, unless too many workers died over it: then that is noted."""
    if lease.attempts <= deps.settings.max_attempts:
        return await run_maintenance(deps, lease.scope, epoch=lease.epoch)
    progress = MaintenanceProgress(lease.scope)
    run = MaintenanceRun(lease.scope, deps.settings.worker, lease.epoch)
    await _record_end(deps, progress, run, "MaintenanceAttemptsExhausted")
    return progress


async def _renew_lease(deps: MaintenanceDependencies, lease: MaintenanceLease) -> NoReturn:
    """Renews the lease every third of its time, until that fails."""
    lease_seconds = deps.settings.lease_seconds
    while True:
        await asyncio.sleep(lease_seconds / 3)
        ensure_lease_held(await deps.maintenance.renew(lease, lease_seconds))


async def _release_lease(
    deps: MaintenanceDependencies, lease: MaintenanceLease, pause: float
) -> None:
    """Releases a tenant for the next worker after a pause, or at once if this one is stopped."""
    try:
        await deps.maintenance.release(lease, pause)
    except ReverieError as error:
        log.warning("lease_release_failed", reason=str(error))


async def run_maintenance(
    deps: MaintenanceDependencies,
    scope: MaintenanceScope,
    step_names: Collection[str] = (),
    epoch: int = 0,
) -> MaintenanceProgress:
    """Runs the steps over the scopes and keeps a record. Safe to run concurrently.

    `step_names`: only these steps; all if it is empty. `epoch`: the epoch of the lease.

    A whole tenant continues where its last worker ended; a part of a tenant starts from the
    beginning.
    """
    progress, run = MaintenanceProgress(scope), MaintenanceRun(scope, deps.settings.worker, epoch)
    with span("maintenance", tenant=scope.tenant_name):
        try:
            positions = await deps.maintenance.load_positions(scope)
            steps = STEPS | (REFLECTION_STEPS if deps.settings.reflection_enabled else {})
            steps |= REVIEW_STEPS if deps.settings.review_mode != "off" else {}
            for name, step in steps.items():
                if step_names and name not in step_names:
                    continue
                started, after_id = monotonic(), positions.get(name, START_ID)
                if not await _run_step(deps, progress, run, name, step, after_id):
                    progress.unfinished.append(name)
                progress.record.add_time(name, monotonic() - started)
        except Exception as error:
            await _record_end(deps, progress, run, type(error).__name__)
            raise
    await _record_end(deps, progress, run, None)
    return progress


async def _run_step(
    deps: MaintenanceDependencies,
    progress: MaintenanceProgress,
    run: MaintenanceRun,
    name: str,
    step: MaintenanceStep,
    after_id: UUID,
) -> bool:
    """One pass, page by page until its time is over; whether it came to the end."""
    deadline = monotonic() + deps.settings.maintenance_step_timeout
    while True:
        page = await step(deps, progress, after_id)
        progress.counts["examined"] = progress.counts.get("examined", 0) + page.examined
        after_id = page.last_id or START_ID
        if run.epoch and progress.record.decisions:
            await deps.maintenance.record_run(
                run, "running", None, progress.record.flush(), progress.counts
            )
        await deps.maintenance.save_position(progress.scope, name, after_id, page.examined)
        if page.last_id is None:
            return True
        if monotonic() >= deadline:
            return False


async def _record_end(
    deps: MaintenanceDependencies,
    progress: MaintenanceProgress,
    run: MaintenanceRun,
    error: str | None,
) -> None:
    """Completes the record of the run, if there was anything to examine."""
    log.info("maintenance_finished", **progress.counts, unfinished=progress.unfinished)
    if progress.counts.get("examined") or error:
        status: Literal["done", "failed"] = "failed" if error else "done"
        await deps.maintenance.record_run(run, status, error, progress.record, progress.counts)
