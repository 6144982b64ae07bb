"""What replaced a memory, or contradicts it, reaches an agent before it, whatever its words."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.support.stack import Stack

QUESTION = "How many attempts does the retrier make before it gives up on the upstream?"
CHAINS = {
    "retrier": (
        "The retrier makes five attempts before it gives up on the upstream.",
        "The retrier makes seven attempts, no more, before it gives up on the upstream.",
        "Nine from now on, as measured at the gate.",
    ),
    "upstream": (
        "When the retrier gives up on the upstream, it makes an entry in the journal.",
        "The journal is gone; an event is sent.",
    ),
}
OTHERS = tuple(f"The upstream of shop {n} is asked by the retrier of shop {n}." for n in range(9))


async def _remember(stack: Stack, content: str, **fields: Any) -> str:
    body = {"content": content, "scope": "project/shop", "kind": "decision", **fields}
    return str((await stack.post("/v1/remember", body))["id"])


def _check_order(ids: list[str], chains: list[list[str]]) -> None:
    """Whatever follows a memory of an answer in its chain stands before it."""
    for chain in chains:
        for place, old in enumerate(chain):
            for new in chain[place + 1 :]:
                assert old not in ids or new in ids[: ids.index(old)], (ids, chain)


async def _ask_everywhere(stack: Stack, chains: list[list[str]]) -> list[list[str]]:
    """The ids that a recall of each size, a budget, and a preflow give, best first."""
    answers = []
    sizes: list[dict[str, int]] = [{"limit": n} for n in (1, 2, 3, 8)]
    for size in (*sizes, {"limit": 8, "budget_tokens": 30}):
        body = {"query": QUESTION, "scopes": ["project/shop"], **size}
        found = await stack.post("/v1/recall", body)
        assert not found["degraded"]
        assert found["answered"]
        answers.append([hit["id"] for hit in found["memories"]])
    start = {"agent": "ann", "project": "shop"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    given = (await stack.post("/v1/preflow", {"session": session, "query": QUESTION}))["items"]
    answers.append([item["id"] for item in given if item["layer"] == "on_demand"])
    for ids in answers:
        _check_order(ids, chains)
    return answers


async def test_the_latest_of_a_key_comes_first_and_the_older_behind_it(stack: Stack) -> None:
    chains = []
    for key, texts in CHAINS.items():
        reason = {"supersede_reason": "measured anew"}
        chains.append(
            [
                await _remember(stack, text, key=key, **(reason if place else {}))
                for place, text in enumerate(texts)
            ]
        )
    for text in OTHERS:
        await _remember(stack, text)
    await stack.settled()
    for ids in await _ask_everywhere(stack, chains):
        assert ids[0] == chains[0][-1]
    context = (await stack.get("/v1/context?project=shop"))["markdown"]
    for chain in chains:
        assert [id[-8:] in context for id in chain] == [False] * (len(chain) - 1) + [True]


async def test_what_contradicts_a_memory_comes_before_it(stack: Stack) -> None:
    chains = []
    for texts in CHAINS.values():
        chain = [await _remember(stack, text) for text in texts]
        for old, new in pairwise(chain):
            await stack.post("/v1/links", {"from": new, "to": old, "type": "contradicts"})
        chains.append(chain)
    for text in OTHERS:
        await _remember(stack, text)
    await stack.settled()
    for ids in await _ask_everywhere(stack, chains):
        assert ids[0] == chains[0][-1]


async def test_before_an_action_what_is_contradicted_is_not_given(stack: Stack) -> None:
    touched = {"git": {"files": ["src/retrier.py"]}}
    command = "alembic upgrade head"
    texts = (
        f"Somebody runs `{command}` by hand before each deploy.",
        f"In its last step, the pipeline calls `{command}`; nobody else may.",
    )
    old, new = [await _remember(stack, text, **touched) for text in texts]
    await stack.post("/v1/links", {"from": new, "to": old, "type": "contradicts"})
    await stack.settled()
    for before, query in (("edit", "src/retrier.py"), ("command", command)):
        start = {"agent": "ann", "project": "shop"}
        session = (await stack.post("/v1/sessions/start", start))["session"]
        body = {"session": session, "query": query, "before": before}
        given = (await stack.post("/v1/preflow", body))["items"]
        assert [item["id"] for item in given] == [new], before


async def test_before_a_command_what_another_contradicts_in_other_words_is_not_given(
    stack: Stack,
) -> None:
    command = "npm install"
    old = await _remember(stack, f"Somebody runs `{command}` after each pull.")
    new = await _remember(stack, "The lock file of pnpm is the only one from now on.")
    start = {"agent": "ann", "project": "shop"}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    body = {"session": session, "query": command, "before": "command"}
    given = (await stack.post("/v1/preflow", body))["items"]
    assert [item["id"] for item in given] == [old]
    await stack.post("/v1/links", {"from": new, "to": old, "type": "contradicts"})
    session = (await stack.post("/v1/sessions/start", start))["session"]
    assert (await stack.post("/v1/preflow", body | {"session": session}))["items"] == []


async def test_the_title_of_a_session_alone_is_given_to_no_agent(stack: Stack) -> None:
    title = f"Session: {QUESTION}"
    empty = await _remember(stack, title, kind="session")
    told = await _remember(stack, f"{title}\n- The retrier makes seven attempts.", kind="session")
    await stack.settled()
    found = await stack.post("/v1/recall", {"query": QUESTION, "scopes": ["project/shop"]})
    by_id = {hit["id"]: hit["relevance"] for hit in found["memories"]}
    assert by_id[empty] == 0.0
    assert by_id[told] >= 0.6
    start = {"agent": "ann", "project": "shop"}
    started = await stack.post("/v1/sessions/start", start)
    given = await stack.post("/v1/preflow", {"session": started["session"], "query": QUESTION})
    ids = {item["id"] for item in given["items"]}
    assert told in ids
    assert empty not in ids
    context = (await stack.get("/v1/context?project=shop"))["markdown"]
    assert told[-8:] in context
    assert empty[-8:] not in context
