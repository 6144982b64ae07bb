"""An agent's day through the gateway: remember, recall, dream, stale marks."""

from __future__ import annotations

from tests.support.stack import Stack


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
    await stack.settled()
    found = await stack.post("/v1/recall", {"query": "feline resting near glass"})
    [first, *_] = [m for m in found["memories"] if "meaning" in m["arms"]]
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
    await stack.settled()
    [run] = (await stack.get("/v1/dreams"))["items"]
    assert (run["status"], run["turns"]) == ("done", len(turns))
    memories = (await stack.get("/v1/memories?scope=project/shop"))["items"]
    assert run["created"] == len(memories) > 1
    listed = (await stack.get(f"/v1/sessions/{session['session']}/turns"))["items"]
    known = {turn["id"] for turn in listed}
    assert all(turn["digested"] for turn in listed)
    assert all(set(m["provenance"]["turns"]) <= known for m in memories)
    assert all(m["provenance"]["turns"] for m in memories)
    found = await stack.post("/v1/recall", {"query": "how do we store money amounts?"})
    assert "cents" in found["memories"][0]["content"]
    context = await stack.get("/v1/context?project=shop")
    assert "cents" in context["markdown"]
    assert "project/shop" in context["summaries"]


async def test_a_commit_makes_the_memory_of_its_file_stale(stack: Stack) -> None:
    body = {
        "content": "Rate limits live in src/middleware/limit.ts as a token bucket",
        "scope": "project/shop",
    }
    made = await stack.post("/v1/remember", body)
    await stack.settled()
    change = {
        "project": "shop",
        "branch": "main",
        "after": "b" * 40,
        "commits": [
            {"sha": "b" * 40, "subject": "drop limits", "committed_at": "2099-01-01T00:00:00Z"}
        ],
        "files": [{"path": "src/middleware/limit.ts", "status": "deleted"}],
    }
    first = await stack.post("/v1/git/changes", change)
    again = await stack.post("/v1/git/changes", change)
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert first["event"] == again["event"]
    await stack.settled()
    [item] = (await stack.get("/v1/stale?project=shop"))["items"]
    assert item["memory"]["id"] == made["id"]
    assert item["grade"] == "gone"
    assert item["evidence"][0]["commit"] == "b" * 40
    found = await stack.post("/v1/recall", {"query": "rate limits token bucket"})
    assert found["memories"][0]["staleness"] > 0.9
    assert "limit.ts" in found["memories"][0]["stale_reason"]
