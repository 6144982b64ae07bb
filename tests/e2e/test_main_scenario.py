"""An agent's day through the gateway: remember, recall, dream, stale marks."""

from __future__ import annotations

from typing import Any

from tests.support.stack import Stack, eventually


async def _files_of(stack: Stack, memory: str) -> list[str]:
    detail = await stack.get(f"/v1/memories/{memory}")
    return [near["label"] for near in detail["neighbours"] if near["kind"] == "file"]


async def test_a_memory_is_found_by_words_as_soon_as_the_reply_is_sent(stack: Stack) -> None:
    body = {"content": "We chose RS256 over HS256 for compliance", "scope": "project/shop"}
    made = await stack.post("/v1/remember", body)
    found = await stack.post("/v1/recall", {"query": "why RS256?"})
    assert made["status"] == "created"
    assert found["memories"][0]["id"] == made["id"]
    assert "words" in found["memories"][0]["arms"]
    assert found["degraded"] == []


async def test_a_memory_is_found_by_meaning_after_enrichment(stack: Stack) -> None:
    made = await stack.post("/v1/remember", {"content": "The cat sat on the warm windowsill."})
    await stack.post("/v1/remember", {"content": "Kubernetes restarts a pod that fails its probe."})

    async def by_meaning() -> Any:
        found = await stack.post("/v1/recall", {"query": "feline resting near glass"})
        return [m for m in found["memories"] if "meaning" in m["arms"]][:1]

    [first] = await eventually(by_meaning)
    assert first["id"] == made["id"]
    assert "words" not in first["arms"]


async def test_repeated_content_is_one_memory_with_more_confidence(stack: Stack) -> None:
    body = {"content": "Tests run on real servers", "scope": "project/shop"}
    one = await stack.post("/v1/remember", body)
    two = await stack.post("/v1/remember", body)
    assert (two["id"], two["status"]) == (one["id"], "duplicate")
    detail = await stack.get(f"/v1/memories/{one['id']}")
    assert detail["confidence"] > 0.8


async def test_a_key_is_superseded_with_a_reason_and_refused_without(stack: Stack) -> None:
    first = {"content": "Use jsonwebtoken", "scope": "project/shop", "key": "jwt-library"}
    old = await stack.post("/v1/remember", first)
    other = {**first, "content": "Use jose"}
    refused = await stack.call("POST", "/v1/remember", other)
    assert refused.status == 409
    assert refused.body["current"]["id"] == old["id"]
    new = await stack.post("/v1/remember", {**other, "supersede_reason": "runs on the edge"})
    assert new["status"] == "superseded"
    before = await stack.get(f"/v1/memories/{old['id']}")
    assert before["status"] == "superseded"
    assert [(n["id"], n["type"]) for n in before["neighbours"]] == [(new["id"], "supersedes")]


async def test_secrets_are_redacted_in_every_text_field(stack: Stack) -> None:
    secret = "AKIA" + "IOSFODNN7ABCDEFG"
    body = {
        "content": f"deploy with {secret}",
        "summary": f"key {secret}",
        "tags": ["aws", secret],
        "key": f"deploy-{secret}",
        "metadata": {"seen": [secret]},
        "scope": "project/shop",
    }
    made = await stack.post("/v1/remember", body)
    detail = await stack.get(f"/v1/memories/{made['id']}")
    assert made["redactions"] == 5
    assert secret not in str(detail)
    assert "[REDACTED_" in detail["content"]


async def test_a_conversation_becomes_memories_and_a_summary(stack: Stack) -> None:
    start = {"agent": "claude", "project": "shop", "branch": "main"}
    session = await stack.post("/v1/sessions/start", start)
    turns = [
        {"role": "user", "content": "The checkout fails when the cart holds a gift card. Why?"},
        {"role": "assistant", "content": "Let me look at src/checkout/total.ts."},
        {"role": "tool", "tool": "Read", "content": "src/checkout/total.ts\n" + "x = 1;\n" * 2000},
        {
            "role": "assistant",
            "content": "The root cause: `total.ts` subtracts the gift card twice, because "
            "applyCredits() runs again after tax. I fixed src/checkout/total.ts so that credits "
            "are applied once, after tax.",
        },
        {
            "role": "user",
            "content": "Good. Remember that all money is integer cents, never floats.",
        },
        {
            "role": "assistant",
            "content": "Understood: from now on all money amounts are integer cents, never floats.",
        },
    ]
    done = await stack.post("/v1/turns", {"session": session["session"], "turns": turns})
    assert done["accepted"] == len(turns)
    ended = await stack.post(f"/v1/sessions/{session['session']}/end", {})
    assert ended["dream"]["scope"] == "project/shop"

    async def dreamt() -> Any:
        runs = (await stack.get("/v1/dreams"))["items"]
        return [run for run in runs if run["status"] == "done"]

    [run] = await eventually(dreamt)
    assert run["turns"] == len(turns)
    memories = (await stack.get("/v1/memories?scope=project/shop"))["items"]
    assert run["created"] == len(memories) > 1
    listed = (await stack.get(f"/v1/sessions/{session['session']}/turns"))["items"]
    known = {turn["id"] for turn in listed}
    assert all(turn["digested"] for turn in listed)
    assert all(set(m["provenance"]["turns"]) <= known for m in memories)
    assert all(m["provenance"]["turns"] for m in memories)

    async def money_first() -> bool:
        found = await stack.post("/v1/recall", {"query": "how do we store money amounts?"})
        return "cents" in found["memories"][0]["content"]

    assert await eventually(money_first)
    context = await stack.get("/v1/context?project=shop")
    assert "cents" in context["markdown"]
    assert "project/shop" in context["summaries"]


async def test_a_commit_makes_the_memory_of_its_file_stale(stack: Stack) -> None:
    body = {
        "content": "Rate limits live in src/middleware/limit.ts as a token bucket",
        "scope": "project/shop",
    }
    made = await stack.post("/v1/remember", body)
    await eventually(lambda: _files_of(stack, made["id"]))
    change = {
        "project": "shop",
        "branch": "main",
        "after": "b" * 40,
        "commits": [
            {"sha": "b" * 40, "subject": "drop limits", "committed_at": "2099-01-01T00:00:00Z"}
        ],
        "files": [{"path": "src/middleware/limit.ts", "status": "deleted"}],
    }
    told = await stack.post("/v1/git/changes", change)
    again = await stack.post("/v1/git/changes", change)
    assert (told["duplicate"], again["duplicate"]) == (False, True)
    assert told["event"] == again["event"]

    async def stale() -> Any:
        return (await stack.get("/v1/stale?project=shop"))["items"]

    [item] = await eventually(stale)
    assert item["memory"]["id"] == made["id"]
    assert item["grade"] == "gone"
    assert item["evidence"][0]["commit"] == "b" * 40
    found = await stack.post("/v1/recall", {"query": "rate limits token bucket"})
    assert found["memories"][0]["staleness"] > 0.9
    assert "limit.ts" in found["memories"][0]["stale_reason"]
