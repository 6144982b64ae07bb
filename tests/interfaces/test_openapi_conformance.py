"""Requests generated from the OpenAPI document get the documented answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reverie.testing.chat_server import ChatAnswer, chat_server
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from tests.interfaces.running_engine import engine_settings, run_engine
from tests.support.stack import VAULT_KEY, Stack, running_stack


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
async def test_every_call_answers_as_documented(
    database: DatabaseUrls, nats_url: str, tmp_path: Path
) -> None:
    """On a system of the test's own: generated calls may do anything to it."""
    from tests.interfaces.generated_requests import EXAMPLES, find_wrong_answers

    async with chat_server(lambda _: ChatAnswer("Aye.")) as models:
        settings = {**engine_settings(models.url, tmp_path), "vault_key": VAULT_KEY}
        opened = running_stack(database, nats_url, model_home(), **settings)
        async with opened as alone, run_engine(alone):
            wrong = await asyncio.to_thread(find_wrong_answers, alone.url, alone.key, alone.url)
            for service, url in alone.urls.items():
                if EXAMPLES > 10 and url != alone.url:  # The services beside the gateway, too.
                    own = {route.name for route in alone.routes[service]}
                    wrong += await asyncio.to_thread(
                        find_wrong_answers, alone.url, alone.key, url, own
                    )
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
