"""What recall answers: within a token budget, in a stable order, in Chinese, by identifier."""

from __future__ import annotations

from typing import Any

from reverie.inference.model_catalogue import DEFAULT_MODEL
from reverie.inference.token_counters import ModelTokenCounter
from reverie.testing.models import model_home
from tests.support.stack import Stack


async def _remember(stack: Stack, project: str, content: str, **fields: Any) -> str:
    body = {"content": content, "scope": f"project/{project}", **fields}
    return str((await stack.post("/v1/remember", body))["id"])


async def _recall(stack: Stack, project: str, query: str, **fields: Any) -> dict[str, Any]:
    body = {"query": query, "scopes": [f"project/{project}"], **fields}
    return dict(await stack.post("/v1/recall", body))


def _list_ids(answer: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in answer["memories"]]


async def test_16_a_500_token_budget_gives_an_answer_of_at_most_500_counted_tokens(
    stack: Stack,
) -> None:
    for n in range(12):
        words = f"The ledger keeps entry {n} of the audit, and every line of it is signed. " * (
            n + 1
        )
        await _remember(stack, "budget", words)
    answer = await _recall(stack, "budget", "audit ledger entries", budget_tokens=500, limit=50)
    counter = ModelTokenCounter(model_home() / "models" / DEFAULT_MODEL)
    counted = sum(counter.count(hit["content"]) for hit in answer["memories"])
    assert 300 < counted == answer["tokens"] <= 500
    everything = await _recall(stack, "budget", "audit ledger entries", limit=50)
    assert len(everything["memories"]) > len(answer["memories"]) > 1
    assert everything["tokens"] > 500


async def test_17_the_intent_of_a_question_is_named_in_the_trace(stack: Stack) -> None:
    for intent, question in (("why", "Why did we drop Redis?"), ("how", "如何回滚部署?")):
        answer = await _recall(stack, "intents", question)
        trace = await stack.get(f"/v1/traces/{answer['trace_id']}")
        assert (trace["intent"], trace["query"]) == (intent, question)


async def test_23_the_same_recall_gives_the_same_order_each_time(stack: Stack) -> None:
    for n in range(15):
        await _remember(stack, "order", f"Worker {n} reads the import queue of shop {n % 3}")
    for n in range(5):
        await _remember(stack, f"order/topic/t{n}", "The import queue is read by a worker")
    await stack.settled()
    asked = {"query": "which worker reads the import queue", "limit": 20}
    scopes = ["project/order", *(f"project/order/topic/t{n}" for n in range(5))]
    answers = [await stack.post("/v1/recall", {**asked, "scopes": scopes}) for _ in range(4)]
    orders = {tuple(_list_ids(answer)) for answer in answers}
    assert len(orders) == 1
    assert len(orders.pop()) > 10


async def test_30_a_chinese_memory_is_found_by_part_of_its_words(
    stack: Stack,
) -> None:
    wanted = await _remember(stack, "chinese", "数据库连接池的最大连接数设为二十，超时三秒")
    await _remember(stack, "chinese", "前端使用深色主题，按钮为圆角")
    await _remember(stack, "chinese", "数据库每天夜里备份到对象存储")
    for query in ("连接池", "数据库连接池", "连接池超时是多少"):
        assert _list_ids(await _recall(stack, "chinese", query))[0] == wanted, query


async def test_31_an_identifier_is_found_by_its_words_and_a_path_by_its_parts(
    stack: Stack,
) -> None:
    function = await _remember(stack, "names", "getUserById caches rows for a minute")
    path = await _remember(stack, "names", "src/middleware/auth.ts checks tokens first")
    await _remember(stack, "names", "The user list is sorted by name, each by its id")
    await _remember(stack, "names", "Reports are rendered at night")
    await stack.settled()
    wanted = {
        "get user by id": function,
        "getUserById": function,
        "get_user_by_id": function,
        "auth middleware": path,
        "src/middleware/auth.ts": path,
        "auth.ts": path,
    }
    for query, one in wanted.items():
        assert _list_ids(await _recall(stack, "names", query))[0] == one, query


async def test_35_a_superseded_memory_is_found_marked_and_ranked_below_its_successor(
    stack: Stack,
) -> None:
    first = {"kind": "decision", "key": "jwt"}
    old = await _remember(stack, "successors", "We sign session tokens with jsonwebtoken", **first)
    reason = {"supersede_reason": "it runs at the edge"}
    new = await _remember(
        stack, "successors", "We sign session tokens with jose", **first, **reason
    )
    for settled in (False, True):
        if settled:
            await stack.settled()
        for query in ("how do we sign session tokens", "jsonwebtoken session tokens"):
            answer = await _recall(stack, "successors", query)
            assert _list_ids(answer) == [new, old], (query, settled)
            assert [hit["status"] for hit in answer["memories"]] == ["active", "superseded"]


async def test_lines_of_the_person_asked_about_come_first(
    stack: Stack,
) -> None:
    lines = [
        "Ann: I painted the harbour at dawn",
        "Ann: my sister came by in spring",
        "Ann: no, the boat is not mine",
        "Bob: Ann, you painted the harbour at dawn? I painted the harbour too, at dusk",
        "Bob: she did, did she",
        "A note: Ann has an exhibition in June",
    ]
    ids = [await _remember(stack, "talk", line, kind="context") for line in lines]
    await stack.settled()
    answer = await _recall(stack, "talk", "Which harbour has Ann painted at dawn?")
    assert _list_ids(answer)[0] == ids[0]
    trace = await stack.get(f"/v1/traces/{answer['trace_id']}")
    factors = {one["id"]: one["factors"] for one in trace["candidates"]}
    assert [factors[one].get("speaker", 1.0) for one in ids] == [1, 1, 1, 0.75, 0.75, 1]
