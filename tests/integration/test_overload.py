"""More comes than can be done: some is done, the rest is told when to come again, none is lost."""

from __future__ import annotations

import asyncio
from collections import Counter

from reverie.testing.models import model_home
from reverie.testing.servers import Database
from tests.stack import Reply, running_stack

TIGHT = {
    "work_parallel": 2,
    "work_queue": 6,
    "work_room": 2,
    "work_queue_seconds": 30.0,
    "work_clears_seconds": 0.05,
}


async def test_what_is_let_in_is_done_and_the_rest_is_told_when_to_come_again(
    database: Database, nats_url: str
) -> None:
    async with running_stack(database, nats_url, model_home(), **TIGHT) as stack:

        async def remember(number: int) -> Reply:
            said = {"content": f"Worker {number} keeps the key of room {number * 7}"}
            return await stack.call("POST", "/v1/remember", said)

        async def recall(number: int) -> Reply:
            return await stack.call("POST", "/v1/recall", {"query": f"room {number}"})

        written = await asyncio.gather(*(remember(n) for n in range(60)))
        asked = await asyncio.gather(*(recall(n) for n in range(60)))
        for answers, good in ((written, 201), (asked, 200)):
            told = Counter(answer.status for answer in answers)
            assert set(told) == {good, 503}, told
            for answer in answers:
                if answer.status == 503:
                    assert answer.body["code"] == "unavailable"
                    assert "are under way" in answer.body["detail"]
                    assert 1 <= int(answer.headers["Retry-After"]) <= 2
        for answer in written:
            if answer.status == 201:
                found = await stack.get(f"/v1/memories/{answer.body['id']}")
                assert found["content"].startswith("Worker")
        # Whoever asks how it goes is always answered, and it goes on as before.
        metrics = await stack.http.get(f"{stack.url}/metrics")
        refused = [line for line in (await metrics.text()).splitlines() if "refused_total" in line]
        assert any('of="ingest"' in line and not line.endswith(" 0.0") for line in refused)
        assert (await recall(1)).status == 200
