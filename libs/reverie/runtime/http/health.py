"""The `/health`, `/ready` and `/metrics` routes of every service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import PackageNotFoundError, version

from prometheus_client import CollectorRegistry

from reverie.contracts.base import ResponseBody
from reverie.domain.core.errors import ReverieError
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.routes import Route
from reverie.runtime.http.validation import QueryParams
from reverie.runtime.observability.metrics import PolledGauges, render_metrics

CHECK_TIMEOUT = 2.0
SHARED_CHECKS = frozenset({"postgres"})
"""Checks of what all replicas of a service share."""

HealthCheck = Callable[[], Awaitable[None]]


class LivenessResponse(ResponseBody):
    """`GET /health`. Uptime in seconds. All services of a home folder have one `instance`."""

    status: str = "live"
    service: str
    instance: str
    version: str
    uptime: float


class CheckResult(ResponseBody):
    """One thing the service needs: whether it is there, and what to do if not."""

    ok: bool
    hint: str | None = None


class ReadinessResponse(ResponseBody):
    """`GET /ready`: 200 if all checks pass, else 503."""

    status: str
    service: str
    checks: dict[str, CheckResult]


class ReadinessQuery(QueryParams):
    """`own`: skip dependencies that all replicas share, such as Postgres.

    So a probe does not remove a replica for a failure that affects every replica.
    """

    own: bool = False


def package_version() -> str:
    """The version of the installed distribution."""
    try:
        return version("reverie")
    except PackageNotFoundError:
        return "unknown"


def health_routes(
    service: str,
    checks: Mapping[str, HealthCheck],
    registry: CollectorRegistry,
    gauges: PolledGauges,
    instance: str,
) -> list[Route]:
    """The three open routes of every service."""
    started = time.monotonic()

    async def health(_: Call[None, None]) -> LivenessResponse:
        uptime = round(time.monotonic() - started, 1)
        return LivenessResponse(
            service=service, instance=instance, version=package_version(), uptime=uptime
        )

    async def metrics(call: Call[None, None]) -> Reply:
        await gauges.refresh()
        body, media_type = render_metrics(registry, call.headers.get("Accept", ""))
        return Reply(200, body, {"Content-Type": media_type})

    async def readiness(call: Call[None, ReadinessQuery]) -> Reply:
        excluded = SHARED_CHECKS if call.query.own else frozenset()
        results = await run_checks(
            {name: check for name, check in checks.items() if name not in excluded}
        )
        ok = all(result.ok for result in results.values())
        status = "ready" if ok else "not ready"
        body = ReadinessResponse(status=status, service=service, checks=results)
        return Reply(200 if ok else 503, body)

    return [
        Route(
            "GET",
            "/health",
            health,
            response=LivenessResponse,
            public=True,
            summary="Check that the process answers",
        ),
        Route(
            "GET",
            "/ready",
            readiness,
            query=ReadinessQuery,
            response=ReadinessResponse,
            public=True,
            summary="Check that everything the service needs is available",
        ),
        Route(
            "GET",
            "/metrics",
            metrics,
            public=True,
            summary="Prometheus metrics",
            response_examples={
                "text/plain": "# HELP reverie_http_requests_total Requests answered.\n",
                "application/openmetrics-text": "# HELP reverie_http_requests Requests answered.\n",
            },
        ),
    ]


async def run_checks(
    checks: Mapping[str, HealthCheck], seconds: float = CHECK_TIMEOUT
) -> dict[str, CheckResult]:
    """All checks at once, each with `seconds` to answer."""
    results = await asyncio.gather(*(_run_check(check, seconds) for check in checks.values()))
    return dict(zip(checks, results, strict=True))


async def _run_check(check: HealthCheck, seconds: float) -> CheckResult:
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
