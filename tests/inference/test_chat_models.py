"""Connections to chat models: which answers are asked for again, and after how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import httpx2
import pytest
from pydantic_ai import Agent

from reverie.inference import chat_models
from reverie.inference.chat_models import (
    RetryingTransport,
    open_chat_models,
    parse_chat_endpoints,
)
from reverie.testing.chat_server import ChatAnswer, chat_server

URL = "http://model.test/v1"
OK = httpx2.Response(200)


class Answers(httpx2.AsyncBaseTransport):
    """Answers one after the other; an error is raised."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited, without waiting."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(chat_models, "asyncio", SimpleNamespace(sleep=sleep))
    return waited


def _refused(status: int, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, headers=named)


async def _ask(answers: Answers) -> int:
    async with httpx2.AsyncClient(transport=RetryingTransport(answers)) as client:
        return (await client.post(URL)).status_code


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_a_refusal_for_now_is_asked_again_after_the_time_that_it_names(
    status: int, pauses: list[float]
) -> None:
    assert await _ask(Answers(_refused(status, Retry_After="7"), OK)) == 200
    assert pauses == [7.0]


async def test_a_date_to_retry_after_is_understood(pauses: list[float]) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert await _ask(Answers(_refused(429, Retry_After=at), OK)) == 200
    assert 25.0 < pauses[0] <= 30.0


@pytest.mark.parametrize(("named", "waited"), [("86400", 60.0), ("0", 0.0)])
async def test_no_refusal_holds_a_turn_for_long(
    named: str, waited: float, pauses: list[float]
) -> None:
    assert await _ask(Answers(_refused(429, Retry_After=named), OK)) == 200
    assert pauses == [waited]


@pytest.mark.parametrize("named", ["", "soon", "-1", "\u00b2"])
async def test_without_a_time_it_waits_longer_each_time(named: str, pauses: list[float]) -> None:
    header = {"Retry_After": named} if named.isascii() and named else {}
    answers = Answers(*(_refused(503, **header) for _ in range(3)))
    assert await _ask(answers) == 503
    assert answers.asked == 3
    assert 0.5 <= pauses[0] <= 1.0 <= pauses[1] <= 2.0


async def test_no_connection_is_tried_again_and_then_told(pauses: list[float]) -> None:
    assert await _ask(Answers(httpx2.ConnectError("refused"), OK)) == 200
    with pytest.raises(httpx2.ConnectError):
        await _ask(Answers(*(httpx2.ConnectError("refused") for _ in range(3))))
    assert len(pauses) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_for_good_is_asked_once(status: int, pauses: list[float]) -> None:
    answers = Answers(_refused(status))
    assert await _ask(answers) == status
    assert (answers.asked, pauses) == (1, [])


async def test_ollama_is_asked_at_its_own_address_without_a_key() -> None:
    [local] = parse_chat_endpoints(
        '{"default": {"provider": "ollama", "model": "qwen3"}}', None
    ).values()
    address = local.to_language_endpoint(None, 1.0)
    assert (address.provider, address.url) == ("openai", "http://127.0.0.1:11434/v1")
    async with chat_server(lambda asked: ChatAnswer(f"I am {asked.model}.")) as server:
        moved = local.model_copy(update={"url": f"{server.url}/v1"})
        async with open_chat_models({"default": moved}, 20.0) as models:
            agent = Agent(models.create("default"))
            async with agent.run_stream("Who are you?") as result:
                assert await result.get_output() == "I am qwen3."
