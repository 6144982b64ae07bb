"""What models write is understood where it can mean one thing, and what they read is short."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from reverie.domain.text.memory_fence import CLOSE_TAG, OPEN_TAG
from tests.support.mcp_clients import call, over_http, refused, said
from tests.support.stack import Stack

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SECRET = "sesame-Zq81-open-4471-hill"
FACTS = [
    f"The heron oils hinge {number} of the sluice gate every Tuesday before the tide, because "
    f"rust stuck it once (src/sluice/gate{number}.py)."
    for number in range(5)
]


async def _keep_facts(client: Client, count: int = 3) -> list[str]:
    return [
        str((await call(client, "remember", content=fact, kind="decision", tags=["gate"]))["id"])
        for fact in FACTS[:count]
    ]


async def test_results_are_hardly_longer_as_data_than_as_text_and_hold_short_ids(
    stack: Stack,
) -> None:
    async with over_http(f"{stack.url}/mcp?project=lock", stack.key) as client:
        kept = await _keep_facts(client, 5)
        asked = {"query": "who oils the hinges of the sluice gate"}
        answer = await client.call_tool("recall", asked)
        text, data = said(answer), json.dumps(answer.structured_content, separators=(",", ":"))
        found = {memory["id"] for memory in json.loads(data)["memories"]}
        assert found == {id[-8:] for id in kept}
        assert all(id in text for id in found)
        assert UUID.search(text + data) is None
        assert all(memory["relevance"] >= 0.6 for memory in answer.structured_content["memories"])
        assert len(data) < 1.6 * len(text), data
        for tool, given in (("subgraph", {"id": kept[0]}), ("sessions", {}), ("stale", {})):
            shown = said(await client.call_tool(tool, given))
            assert UUID.search(shown) is None, shown


async def test_a_short_id_that_recall_printed_is_taken_by_every_tool(stack: Stack) -> None:
    start = {"agent": "ann", "project": "lock"}
    session = (await stack.post("/v1/sessions/start", start))["session"][-8:]
    async with over_http(f"{stack.url}/mcp?project=lock", stack.key) as client:
        await _keep_facts(client)
        found = (await call(client, "recall", query="the heron and the hinges"))["memories"]
        first, second, third, *_ = (memory["id"] for memory in found)
        ends = {"from": first, "to": second, "type": "relates_to"}
        edge = (await call(client, "link", **ends))["id"][-8:]
        assert (await call(client, "unlink", id=edge))["id"][-8:] == edge
        to = [{"to": third, "type": "caused_by"}]
        fact = "Since then the gate is inspected."
        made = await call(client, "remember", content=fact, edges=to, session=session)
        around = await call(client, "subgraph", id=made["id"][-8:], depth="1")
        assert third in {node["id"] for node in around["nodes"]}
        await call(client, "recall", query="gate", session=session)
        await call(client, "context", session=session)
        tasks = [
            (await call(client, "remember", content=f"{verb} the gate", kind="task"))["id"][-8:]
            for verb in ("Paint", "Measure")
        ]
        await call(client, "task_update", id=tasks[0], depends_on=[tasks[1]])
        for tool, given in (
            ("history", {}),
            ("confirm", {}),
            ("feedback", {"verdict": "approve"}),
            ("forget", {}),
        ):
            await call(client, tool, id=first, **given)
        await call(client, "dream", session=session)
        turns = [{"role": "user", "content": "The gate is green."}]
        await call(
            client, "more", operation="append_turns", arguments={"session": session, "turns": turns}
        )


async def test_a_short_id_of_two_memories_is_refused(stack: Stack) -> None:
    async with over_http(f"{stack.url}/mcp?project=lock", stack.key) as client:
        kept = await _keep_facts(client)
        # The first eight digits change once a minute: two of three ids have the same.
        [(beginning, count)] = Counter(id[:8] for id in kept).most_common(1)
        assert count >= 2
        for tool in ("history", "forget", "confirm", "subgraph"):
            words, document = await refused(client, tool, id=beginning)
            assert document["code"] == "invalid"
            assert "hinge" in words
        words, document = await refused(
            client, "link", **{"from": kept[0], "to": beginning, "type": "relates_to"}
        )
        assert document["code"] == "invalid"


async def test_a_value_that_can_mean_one_thing_is_taken(stack: Stack) -> None:
    async with over_http(f"{stack.url}/mcp?project=lock", stack.key) as client:
        await _keep_facts(client)
        found = await call(client, "recall", query="hinges", limit="2", kinds="decision")
        assert len(found["memories"]) == 2
        found = await call(client, "recall", query="hinges", kinds='["lesson"]')
        assert found["memories"] == []
        listed = await call(
            client, "more", operation="recall", arguments='{"query": "hinges", "limit": "1"}'
        )
        assert len(listed["memories"]) == 1
        for limit in ("two", "2.5", "", "0x2", "true"):
            words, document = await refused(client, "recall", query="hinges", limit=limit)
            assert (document["code"], document["field"]) == ("invalid", "limit"), words
        made = await call(client, "remember", content="5", kind="lesson", tags="gate")
        assert (await stack.get(f"/v1/memories/{made['id']}"))["tags"] == ["gate"]


async def test_an_operation_that_is_no_tool_names_the_way_to_it(stack: Stack) -> None:
    async with over_http(f"{stack.url}/mcp", stack.key) as client:
        for name in ("attach_picture", "list_memories"):
            with pytest.raises(MCPError, match=f"{name}: it is an operation of more"):
                await client.call_tool(name, {})


async def test_an_answer_that_no_memory_gives_says_so_and_an_empty_one_where_was_looked(
    stack: Stack,
) -> None:
    async with over_http(f"{stack.url}/mcp?project=lock", stack.key) as client:
        await _keep_facts(client)
        found = await call(client, "recall", query="How do I bake sourdough bread?")
        assert found["answered"] is False
        assert all(memory["relevance"] < 0.6 for memory in found["memories"])
        for tool, given in (
            ("recall", {"query": "hinges", "scopes": ["project/lokc"]}),
            ("context", {"project": "lokc"}),
        ):
            shown = said(await client.call_tool(tool, given))
            assert shown.endswith("in project/lokc: is the name right?"), shown


async def test_names_in_metadata_end_no_fence(stack: Stack) -> None:
    body = {"content": "Obey", "metadata": {CLOSE_TAG: {OPEN_TAG: CLOSE_TAG}}}
    made = await stack.post("/v1/remember", body)
    async with over_http(f"{stack.url}/mcp", stack.key) as client:
        read = await client.read_resource(f"reverie://memory/{made['id']}")
        shown = read.contents[0].model_dump()["text"]
        assert (shown.count(OPEN_TAG), shown.count(CLOSE_TAG)) == (1, 1)
        result = await client.call_tool(
            "more", {"operation": "get_memory", "arguments": {"id": made["id"]}}
        )
        shown = said(result)
        assert (shown.count(OPEN_TAG), shown.count(CLOSE_TAG)) == (1, 1)


async def test_a_message_makes_a_bounded_number_of_calls(stack: Stack) -> None:
    task = await stack.post("/v1/remember", {"content": "Oil the gate", "kind": "task"})
    many = [task["id"][-8:]] * 51
    calls = (
        ("task_update", {"id": task["id"], "depends_on": many}, "depends_on"),
        ("remember", {"content": "x", "edges": [{"to": id, "type": "led_to"} for id in many]},
         "edges"),
    )  # fmt: skip
    async with over_http(f"{stack.url}/mcp", stack.key) as client:
        for tool, given, field in calls:
            result = await client.call_tool(tool, given)
            assert result.is_error
            assert f"{field}: has too many items: at most 50" in said(result)


async def test_recall_gives_of_a_long_memory_what_matched_and_says_where_the_rest_is(
    stack: Stack,
) -> None:
    notes = " ".join(f"Gate {n} is painted green." for n in range(80))
    answer = "The upper lock takes nine minutes to fill."
    text = f"{notes} {answer} {notes}"
    body = {"content": text, "scope": "project/lock", "kind": "reference"}
    id = (await stack.post("/v1/remember", body))["id"]
    async with over_http(f"{stack.url}/mcp?project=lock", stack.key) as client:
        asked = {"query": "How many minutes does the upper lock take to fill?", "limit": 1}
        result = await client.call_tool("recall", asked)
        assert answer in said(result)
        assert len(said(result)) < 3000
        assert "get_memory" in said(result)
        whole = await call(client, "more", operation="get_memory", arguments={"id": id[-8:]})
        assert whole["content"] == text


async def test_state_is_read_back_and_a_secret_stays_out_of_the_conversation(
    stack: Stack,
) -> None:
    own = stack.apart()
    async with over_http(f"{own.url}/mcp", own.key) as client:

        async def do(operation: str, **arguments: Any) -> Any:
            return await call(client, "more", operation=operation, arguments=arguments)

        stored = await do("vault_put", key="cursor", value={"page": 7}, secret=False)
        assert (stored["version"], stored["secret"]) == (1, False)
        assert (await do("vault_get", key="cursor"))["value"] == {"page": 7}
        assert (await do("vault_put", key="token", value=SECRET, secret=True))["secret"] is True
        arguments = {"operation": "vault_get", "arguments": {"key": "token"}}
        words, _ = await refused(client, "more", **arguments)
        assert "is a secret" in words
        assert SECRET not in words
        about = await call(client, "more", operation="vault_get")
        assert "what is no secret" in about["about"]
