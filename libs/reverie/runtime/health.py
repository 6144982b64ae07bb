"""`/health` says that the process lives, `/ready` whether it can work, `/metrics` how it goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from prometheus_client import CollectorRegistry

from reverie.contracts.base import Answer
from reverie.domain.errors import ReverieError
from reverie.runtime.body import Query
from reverie.runtime.calls import Call, Reply
from reverie.runtime.metrics import Readings, exposition
from reverie.runtime.routes import Route

CHECK_SECONDS = 2.0
SHARED = frozenset({"postgres"})
"""Checks of what all replicas of a service share."""

Check = Callable[[], Awaitable[None]]


class Health(Answer):
    """`GET /health`. Uptime in seconds."""

    status: str = "live"
    service: str
    version: str
    uptime: float


class CheckResult(Answer):
    """One thing the service needs: whether it is there, and what to do if not."""

    ok: bool
    hint: str | None = None


class Ready(Answer):
    """`GET /ready`: 200 where all checks hold, else 503."""

    status: str
    service: str
    checks: dict[str, CheckResult]


class ReadyQuery(Query):
    """`own`: leave out what all replicas share, such as Postgres, so that a probe takes none of
    them away for what no other has either."""

    own: bool = False


def package_version() -> str:
    """The version of the installed distribution."""
    try:
        return version("reverie")
    except PackageNotFoundError:
        return "unknown"


def health_routes(
    service: str,
    checks: Mapping[str, Check],
    registry: CollectorRegistry,
    readings: Readings,
) -> list[Route]:
    """The three open routes of every service."""
    started = time.monotonic()

    async def health(_: Call[None, None]) -> Health:
        uptime = round(time.monotonic() - started, 1)
        return Health(service=service, version=package_version(), uptime=uptime)

    async def metrics(call: Call[None, None]) -> Reply:
        await readings.refresh()
        body, kind = exposition(registry, call.headers.get("Accept", ""))
        return Reply(200, body, {"Content-Type": kind})

    return [
        Route("GET", "/health", health, answer=Health, open=True, summary="Does it live?"),
        Route(
            "GET",
            "/ready",
            partial(_ready, service, checks),
            query=ReadyQuery,
            answer=Ready,
            open=True,
            summary="Can it work?",
        ),
        Route(
            "GET",
            "/metrics",
            metrics,
            open=True,
            summary="Prometheus metrics",
            gives={
                "text/plain": "# HELP reverie_http_requests_total Requests answered.\n",
                "application/openmetrics-text": "# HELP reverie_http_requests Requests answered.\n",
            },
        ),
    ]


async def _ready(service: str, checks: Mapping[str, Check], call: Call[None, ReadyQuery]) -> Reply:
    shared = SHARED if call.query.own else frozenset()
    results = await run_checks({name: one for name, one in checks.items() if name not in shared})
    ok = all(result.ok for result in results.values())
    status = "ready" if ok else "not ready"
    return Reply(200 if ok else 503, Ready(status=status, service=service, checks=results))


async def run_checks(
    checks: Mapping[str, Check], seconds: float = CHECK_SECONDS
) -> dict[str, CheckResult]:
    """All checks at once, each with `seconds` to answer."""
    results = await asyncio.gather(*(_checked(check, seconds) for check in checks.values()))
    return dict(zip(checks, results, strict=True))


async def _checked(check: Check, seconds: float) -> CheckResult:
    try:
        async with asyncio.timeout(seconds):
            await check()
    except TimeoutError:
        return CheckResult(ok=False, hint=f"did not answer within {seconds:g} s")
    except ReverieError as error:
        return CheckResult(ok=False, hint=str(error))
    except Exception as error:
        return CheckResult(ok=False, hint=type(error).__name__)
    return CheckResult(ok=True)
