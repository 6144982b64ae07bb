"""What commits and merged requests leave as memories, and what later commits do to them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.staleness.test_http_intake import SECRET, github, pull, shop
from tests.staleness.test_stale_marks import Shop, edited
from tests.support.stack import Stack, eventually

__all__ = ["shop"]

RETRY = "src/retry.py"
CAP = {
    "subject": "fix: cap Retrier at the measured attempt budget",
    "body": "MAX_ATTEMPTS is 7, because an 8th attempt trips the upstream rate limiter.",
}
QUESTION = "How many attempts may Retrier make against the upstream rate limiter?"


def written(sha: str, at: str, **more: Any) -> dict[str, Any]:
    return {"sha": sha, "committed_at": at} | more


async def memories_of_commits(stack: Stack) -> list[dict[str, Any]]:
    page = await stack.get("/v1/memories?limit=100&status=active&status=superseded")
    return [one for one in page["items"] if (one["key"] or "").startswith("commit:")]


async def recalled(stack: Stack) -> list[dict[str, Any]]:
    body = {"query": QUESTION, "scopes": ["project/shop"]}
    hits: list[dict[str, Any]] = (await stack.post("/v1/recall", body))["memories"]
    return hits


@pytest.mark.parametrize("hunks", [[[10, 2, 10, 1]], []], ids=["lines", "files"])
async def test_a_decision_outlives_the_commit_that_undoes_it_and_names_it(
    stack: Stack, hunks: list[list[int]]
) -> None:
    shop = Shop(stack)
    for number in range(4):
        text = f"The upstream of part {number} limits the rate of attempts to retry"
        await shop.remember(text, kind="decision")
    decision = written("a" * 40, "2026-01-01T10:00:00Z", **CAP)
    await shop.push(
        {"path": RETRY, "status": "modified", "hunks": [[10, 1, 10, 2]]},
        after="a" * 40,
        commits=[decision],
    )
    before = (await recalled(stack))[0]
    undoing = written("b" * 40, "2026-01-01T11:00:00Z", subject="perf: simplify retry")
    detail = "lines" if hunks else "files"
    await shop.push(
        {"path": RETRY, "status": "modified", "hunks": hunks},
        after="b" * 40,
        commits=[undoing],
        detail=detail,
    )
    first = (await recalled(stack))[0]
    assert first["id"] == before["id"]
    assert first["content"].startswith(CAP["subject"])
    assert first["score"] >= 0.9 * before["score"]
    evidence = (await shop.stale(project="shop"))[first["id"]]
    assert (evidence["grade"], evidence["score"] <= 0.11) == ("suspect", True)
    assert evidence["evidence"][0]["subject"] == "perf: simplify retry"
    said = "contradicted by bbbbbbbbbb perf: simplify retry" if hunks else "perf: simplify retry"
    assert said in first["stale_reason"]


async def test_other_lines_and_some_deleted_files_leave_a_decision_alone(stack: Stack) -> None:
    shop = Shop(stack)
    files = [
        {"path": path, "status": "modified", "hunks": [[10, 1, 10, 2]]}
        for path in (RETRY, "src/limits.py")
    ]
    await shop.push(
        *files, after="a" * 40, commits=[written("a" * 40, "2026-01-01T10:00:00Z", **CAP)]
    )
    await shop.push(edited(RETRY, 90))
    assert await shop.stale(project="shop") == {}
    await shop.push({"path": RETRY, "status": "deleted"})
    [one] = (await shop.stale(project="shop")).values()
    assert one["score"] < 0.3
    await shop.push({"path": "src/limits.py", "status": "deleted"})
    [one] = (await shop.stale(project="shop")).values()
    assert (one["grade"], round(one["score"], 2)) == ("suspect", 0.5)


async def test_only_a_revert_replaces_a_decision_however_often_both_are_told(
    stack: Stack,
) -> None:
    shop = Shop(stack)
    decision = written("a" * 40, "2026-01-01T10:00:00Z", **CAP)
    message = f"This reverts commit {'a' * 40}.\n\nThe limiter is gone, so no cap is needed."
    revert = written(
        "b" * 40, "2026-01-02T10:00:00Z", subject='Revert "cap"', body=message, reverts="a" * 40
    )
    change = {"after": "b" * 40, "commits": [decision, revert]}
    await shop.push(**change)
    made = await memories_of_commits(stack)
    assert sorted(one["status"] for one in made) == ["active", "superseded"]
    await shop.push(**change)
    await shop.push(after="a" * 40, commits=[decision])
    again = await memories_of_commits(stack)
    assert [(one["id"], one["version"]) for one in again] == [
        (one["id"], one["version"]) for one in made
    ]
    [active] = [one for one in again if one["status"] == "active"]
    assert "limiter is gone" in active["content"]


async def test_a_secret_in_a_message_is_not_kept(shop: Stack) -> None:
    token = "ghp_" + "Zx81Kq" * 6
    body = f"The job reads {token}, because the runner has no vault."
    commit = written("c" * 40, "2026-01-01T10:00:00Z", subject="ci: read the token", body=body)
    await Shop(shop).push(after="c" * 40, commits=[commit])
    [made] = await memories_of_commits(shop)
    assert "because the runner has no vault" in made["content"]
    assert token not in json.dumps(made)


async def test_a_history_that_comes_later_casts_no_second_doubt(stack: Stack) -> None:
    shop = Shop(stack)
    git = {"lines": {RETRY: [[10, 20]]}, "committed_at": "2026-01-01T09:00:00Z"}
    await shop.remember("Retries back off twice", kind="decision", git=git)
    await shop.applied()
    commits = [
        written(sha * 40, f"2026-01-0{day}T10:00:00Z", subject=f"change {sha}")
        for day, sha in enumerate("abc", 1)
    ]
    await shop.push(edited(RETRY, 90, commit="a" * 40), after="a" * 40, commits=commits[:1])
    [one] = (await shop.stale(project="shop")).values()
    assert one["score"] == pytest.approx(0.2)
    told = [{"path": RETRY, "status": "modified", "commit": "a" * 40}]
    await shop.push(*told, after="b" * 40, commits=commits[:2], detail="files")
    [one] = (await shop.stale(project="shop")).values()
    assert one["score"] == pytest.approx(0.2)
    told.append({"path": RETRY, "status": "modified", "commit": "c" * 40})
    await shop.push(*told, after="c" * 40, commits=commits, detail="files")
    [one] = (await shop.stale(project="shop")).values()
    assert one["score"] == pytest.approx(0.5)


async def test_merged_requests_are_remembered_by_their_title_and_text(shop: Stack) -> None:
    for kind in ("github", "gitlab"):
        await shop.call("PUT", f"/v1/git/webhooks/{kind}/shop", {"secret": SECRET})
    text = "<!-- say why -->\n## Why\n\n" + CAP["body"] + "\n\n## Checklist\n- [x] tests\n"
    merged_at = "2026-01-01T10:00:00Z"
    request = pull(merged=True, title=CAP["subject"], body=text, merged_at=merged_at)
    for _ in range(2):
        path = f"/v1/git/github/{shop.tenant}/shop"
        assert (await shop.call("POST", path, **github(request, "pull_request"))).status == 202
    [made] = await memories_of_commits(shop)
    assert made["key"] == f"commit:{'a' * 40}"
    assert made["content"] == f"{CAP['subject']}\n## Why\n\n{CAP['body']}"
    assert made["provenance"]["git"]["commit"] == "a" * 40
    attributes = {
        "action": "merge", "source_branch": "feat/x", "target_branch": "main",
        "source_project_id": 8, "target_project_id": 9, "merge_commit_sha": "d" * 40,
        "title": "Keep part numbers as text",
        "description": "The importer strips leading zeros, so digits are written as text.",
    }  # fmt: skip
    project = {"path_with_namespace": "us/shop", "default_branch": "main"}
    body = {"object_attributes": attributes, "project": project}
    headers = {"X-Gitlab-Token": SECRET, "X-Gitlab-Event": "Merge Request Hook"}
    reply = await shop.call("POST", f"/v1/git/gitlab/{shop.tenant}/shop", body, headers=headers)
    assert "another repository" in reply.body["ignored"]

    async def both() -> bool:
        return len(await memories_of_commits(shop)) == 2

    await eventually(both)


async def test_a_request_replaces_the_message_of_its_merge_and_keeps_the_files(
    shop: Stack,
) -> None:
    await shop.call("PUT", "/v1/git/webhooks/github/shop", {"secret": SECRET})
    subject = "Merge pull request #12 from us/feat/squashed"
    commit = written("a" * 40, "2026-01-01T10:00:00Z", subject=subject)
    commit["body"] = "Cap Retrier, because an 8th attempt trips the limiter"
    change = {"project": "shop", "branch": "main", "after": "a" * 40, "commits": [commit]}
    await shop.post("/v1/git/changes", change | {"files": [{"path": RETRY, "status": "modified"}]})
    request = pull(merged=True, title=CAP["subject"], body=CAP["body"])
    path = f"/v1/git/github/{shop.tenant}/shop"
    assert (await shop.call("POST", path, **github(request, "pull_request"))).status == 202
    [active] = [one for one in await memories_of_commits(shop) if one["status"] == "active"]
    assert active["content"].endswith(CAP["body"])
    assert active["provenance"]["git"]["files"] == [RETRY]


async def _deliver_request(shop: Stack, text: str = CAP["body"]) -> None:
    request = pull(merged=True, title=CAP["subject"], body=text)
    sent = github(request, "pull_request")
    assert (await shop.call("POST", f"/v1/git/github/{shop.tenant}/shop", **sent)).status == 202


@pytest.mark.parametrize(
    ("is_pushed_first", "is_forgotten"),
    [(True, False), (False, True)],
    ids=["pushed first and edited", "requested first and forgotten"],
)
async def test_a_request_that_is_delivered_again_leaves_an_edited_memory_alone(
    shop: Stack, is_pushed_first: bool, is_forgotten: bool
) -> None:
    await shop.call("PUT", "/v1/git/webhooks/github/shop", {"secret": SECRET})
    if is_pushed_first:
        commit = written("a" * 40, "2026-01-01T10:00:00Z", subject="Merge pull request #12")
        commit["body"] = "Cap Retrier, because an 8th attempt trips the limiter"
        change = {"project": "shop", "branch": "main", "after": "a" * 40, "commits": [commit]}
        await shop.post("/v1/git/changes", change)
    await _deliver_request(shop)
    [made] = [one for one in await memories_of_commits(shop) if one["status"] == "active"]
    await _deliver_request(shop)
    assert (await shop.get(f"/v1/memories/{made['id']}"))["version"] == made["version"]
    own_words = "MAX_ATTEMPTS is 9 by now, because the limiter was raised"
    if is_forgotten:
        await shop.call("DELETE", f"/v1/memories/{made['id']}")
    else:
        await shop.call("PATCH", f"/v1/memories/{made['id']}", {"content": own_words})
    for text in (CAP["body"], f"{CAP['body']} It was measured."):
        await _deliver_request(shop, text)
    active = [
        one["content"] for one in await memories_of_commits(shop) if one["status"] == "active"
    ]
    assert active == ([] if is_forgotten else [own_words])


async def test_a_request_replaces_no_message_that_was_edited_before_it_came(shop: Stack) -> None:
    await shop.call("PUT", "/v1/git/webhooks/github/shop", {"secret": SECRET})
    change = {"project": "shop", "branch": "main", "after": "a" * 40,
              "commits": [written("a" * 40, "2026-01-01T10:00:00Z", **CAP)]}  # fmt: skip
    await shop.post("/v1/git/changes", change)
    [made] = await memories_of_commits(shop)
    await shop.call("PATCH", f"/v1/memories/{made['id']}", {"tags": ["kept"], "pinned": True})
    await _deliver_request(shop, "The text of the request, because it is longer.")
    [active] = await memories_of_commits(shop)
    assert (active["id"], active["tags"], active["status"]) == (made["id"], ["kept"], "active")
