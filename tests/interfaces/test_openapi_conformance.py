"""Requests generated from the OpenAPI document get the documented answers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis

# Else by the first schema, in a thread: pytest parses it, and CPython 3.11 fails where two do so.
import schemathesis.specs.openapi.schemas
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from schemathesis.config import OutputConfig, SanitizationConfig, SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok

from reverie.testing.chat_server import ChatAnswer, chat_server
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.interfaces.running_engine import engine_settings, run_engine
from tests.support.stack import VAULT_KEY, Stack, running_stack

APART = {("GET", "/v1/events"), ("GET", "/v1/groups/{id}/events"), ("POST", "/mcp")}
"""The first two never end; the last answers in its own protocol."""
UNSURE = ("positive_data_acceptance", "ignored_auth", "unsupported_method")
"""What a schema cannot say is refused with 422; the others are tested once for all calls."""
EXAMPLES = int(os.environ.get("REVERIE_TEST_EXAMPLES", "1"))
LONG = EXAMPLES > 10
"""Then each service is asked beside the gateway, too."""
MAX_QUERY_CHARS = 6_000
BARE = SchemathesisConfig(
    output=OutputConfig(sanitization=SanitizationConfig(enabled=False)), color=False
)


def _exercise(url: str, key: str, at: str, own: set[str] | None = None) -> list[str]:
    """What is wrong with the answers at an address: of all calls, or of those of a service."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=BARE)
    checks = [one for one in CHECKS.get_all() if one.__name__ not in UNSURE]
    wrong: list[str] = []
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        method = operation.method.upper()
        if (method, operation.path) in APART:
            continue
        if own is not None and f"{method} {operation.path}" not in own:
            continue
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            wrong += _failures(operation, mode, at, key, checks)
    return wrong


def _arrives(case: Any) -> bool:
    """Whether all of a query can be sent: no empty list, and no longer than a request line."""
    query = case.query or {}
    short = len(urlencode(query, doseq=True)) < MAX_QUERY_CHARS
    return short and all(value not in ([], {}, None) for value in query.values())


def _failures(operation: Any, mode: GenerationMode, url: str, key: str, checks: Any) -> list[str]:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case: Any) -> None:
        assume(_arrives(case))
        case.call_and_validate(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, checks=checks, timeout=20
        )

    try:
        holds()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, operation.label  # It takes nothing at all.
    except (Exception, FailureGroup) as error:
        return [f"{operation.label} ({mode.value}): {error!r}\n{error}"]
    return []


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
async def test_every_call_answers_as_documented(
    database: DatabaseUrls, nats_url: str, tmp_path: Path
) -> None:
    """On a system of the test's own: generated calls may do anything to it."""
    async with chat_server(lambda _: ChatAnswer("Aye.")) as models:
        settings = {**engine_settings(models.url, tmp_path), "vault_key": VAULT_KEY}
        opened = running_stack(database, nats_url, model_home(), **settings)
        async with opened as alone, run_engine(alone):
            await _check_every_call(alone)


async def _check_every_call(alone: Stack) -> None:
    wrong = await asyncio.to_thread(_exercise, alone.url, alone.key, alone.url)
    for service, url in alone.urls.items():
        if LONG and url != alone.url:
            own = {route.name for route in alone.routes[service]}
            wrong += await asyncio.to_thread(_exercise, alone.url, alone.key, url, own)
    assert not wrong, "\n\n".join(wrong)


async def test_the_api_page_works_offline_and_is_cached(
    stack: Stack,
) -> None:
    async with stack.http.get(f"{stack.url}/docs") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/html"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert '<redoc spec-url="/openapi.json">' in await answer.text()
    async with stack.http.get(f"{stack.url}/docs/redoc.js") as answer:
        assert (answer.status, answer.content_type) == (200, "text/javascript")
        assert answer.headers["Content-Encoding"] == "gzip"
        assert len(await answer.read()) > 1_000_000
    made = await stack.post("/v1/remember", {"content": "the page works offline"})
    path = f"/v1/memories/{made['id']}"
    tag = (await stack.call("GET", path)).headers["Etag"]
    for known, status in ((tag, 304), (f'"9", W/{tag}', 304), ('"9"', 200)):
        again = await stack.call("GET", path, headers={"If-None-Match": known})
        assert again.status == status
