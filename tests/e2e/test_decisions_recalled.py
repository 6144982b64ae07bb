"""Decisions from a conversation and from a commit are recalled; what is unrelated is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.stack import Stack

UPLOADS = (
    ("user", "Uploads of large videos fail at the proxy with a 413. Can you fix upload_limits?"),
    ("assistant", "I'll raise the limit to 2 GB for every route, so that nothing is refused."),
    (
        "user",
        "No, not for every route: only /videos may take 2 GB, everything else stays at 10 MB.",
    ),
    (
        "assistant",
        "Recap of upload_limits: /videos takes at most 2 GB, every other route at most 10 MB, and "
        "a refused upload is answered at once with the limit, without a retry.",
    ),
    ("user", "Right."),
)
AMENDMENT = (
    ("user", "Amendment to the decision on upload_limits: videos of 4 GB come in from the field."),
    ("assistant", "Should I raise every route then?"),
    ("user", "No, only /videos changes, from 2 GB to 4 GB. The other routes stay at 10 MB."),
    (
        "assistant",
        "Amended rule in full, superseding the original: in upload_limits /videos takes at most "
        "4 GB, every other route at most 10 MB, and a refused upload is answered without a retry.",
    ),
    ("user", "That is the rule."),
)


async def hand_over(stack: Stack, project: str, talk: Sequence[tuple[str, str]]) -> None:
    """A conversation that ended, and what came of it."""
    start = {"agent": "claude", "project": project}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    turns = [{"role": role, "content": content} for role, content in talk]
    await stack.post("/v1/turns", {"session": session, "turns": turns})
    await stack.post(f"/v1/sessions/{session}/end", {})
    await stack.settled()


async def list_records(stack: Stack, project: str, status: str = "active") -> list[Any]:
    path = f"/v1/memories?scope=project/{project}&status={status}&limit=100"
    page = await stack.get(path)
    return [one for one in page["items"] if "record" in one["metadata"]]


async def recall(stack: Stack, project: str, query: str) -> Any:
    await stack.settled()
    return await stack.post("/v1/recall", {"query": query, "scopes": [f"project/{project}"]})


async def test_an_amended_decision_takes_the_place_of_the_first_and_ranks_above_it(
    stack: Stack,
) -> None:
    await hand_over(stack, "amended", UPLOADS)
    [first] = await list_records(stack, "amended")
    await hand_over(stack, "amended", AMENDMENT)
    [current] = await list_records(stack, "amended")
    assert current["id"] != first["id"]
    assert current["content"].index("4 GB") > 0
    answer = await recall(stack, "amended", "Which size may a video upload have at the proxy?")
    found = [memory["id"] for memory in answer["memories"]]
    assert answer["answered"]
    assert found.index(current["id"]) < found.index(first["id"])


async def test_an_unrelated_prompt_receives_nothing_and_a_related_one_the_whole_record(
    stack: Stack,
) -> None:
    await hand_over(stack, "silent", UPLOADS)
    [record] = await list_records(stack, "silent")
    unrelated = await recall(stack, "silent", "How do I bake sourdough bread?")
    assert unrelated["answered"] is False
    assert unrelated["relevance"] is None or unrelated["relevance"] < 0.6
    session = await stack.post("/v1/sessions/start", {"agent": "claude", "project": "silent"})
    body = {"session": session["session"], "query": "How do I bake sourdough bread?"}
    nothing = await stack.post("/v1/preflow", body)
    assert [item for item in nothing["items"] if item["layer"] == "on_demand"] == []
    body["query"] = "A large video upload fails with 413 at the proxy, which limit holds?"
    given = await stack.post("/v1/preflow", body | {"include_seen": True})
    texts = [item["text"] for item in given["items"] if item["id"] == record["id"]]
    assert texts == [" ".join(record["content"].split())]


async def test_the_message_of_a_commit_is_remembered_with_its_files_and_a_revert_replaces_it(
    stack: Stack,
) -> None:
    sha, revert = "a1" * 20, "b2" * 20
    body = "MAX_ATTEMPTS is 7 because an eighth attempt crosses the upstream's rate-limit window."
    commit = {
        "sha": sha,
        "subject": "fix: cap the retrier at the measured budget",
        "body": body,
        "committed_at": "2026-02-01T10:00:00Z",
    }
    change: dict[str, Any] = {
        "project": "history",
        "branch": "main",
        "after": sha,
        "commits": [commit],
        "files": [{"path": "retry/budget.py", "status": "modified"}],
    }
    await stack.post("/v1/git/changes", change)
    answer = await recall(stack, "history", "Why are there only seven attempts in the retrier?")
    [memory] = answer["memories"]
    assert answer["answered"]
    assert body in memory["content"]
    assert memory["provenance"]["git"]["commit"] == sha
    assert memory["provenance"]["git"]["files"] == ["retry/budget.py"]
    undone = {
        "sha": revert,
        "subject": 'Revert "fix: cap the retrier at the measured budget"',
        "body": f"This reverts commit {sha} because the upstream widened its window to 60 s.",
        "committed_at": "2026-03-01T10:00:00Z",
        "reverts": sha,
    }
    await stack.post("/v1/git/changes", {**change, "after": revert, "commits": [undone]})
    page = await stack.get("/v1/memories?scope=project/history&limit=10")
    states = {one["content"].partition("\n")[0]: one["status"] for one in page["items"]}
    assert states[commit["subject"]] == "superseded"
    assert states[undone["subject"]] == "active"
