"""A branch whose name is, or resembles, a credential fails no turn of its session."""

from __future__ import annotations

from urllib.parse import quote

from tests.support.stack import Stack

BRANCHES = (
    "KEY_00/000001/0",
    "ghp_" + "a1B2" * 9,
    "password=hunter2-Horse",
)


async def test_a_session_of_any_branch_stores_and_finds_what_it_knows(stack: Stack) -> None:
    scopes = set()
    for number, branch in enumerate(BRANCHES):
        body = {"agent": "claude", "project": "shop", "branch": branch}
        started = await stack.post("/v1/sessions/start", body)
        session, scope = started["session"], started["scope"]
        scopes.add(scope)
        content = f"Decision {number}: harbour dues are paid per berth on quay {number}"
        written = await stack.post("/v1/remember", {"content": content, "session": session})
        for asked in ({"session": session}, {"scopes": [scope]}):
            query = f"harbour dues on quay {number}"
            found = await stack.post("/v1/recall", {"query": query, **asked})
            assert written["id"] in [one["id"] for one in found["memories"]], branch
        await stack.post("/v1/preflow", {"session": session, "query": "How are dues paid?"})
        listed = await stack.get(f"/v1/memories?scope={quote(scope, safe='')}")
        assert [one["id"] for one in listed["items"]] == [written["id"]]
        assert branch not in str(listed)
    assert len(scopes) == len(BRANCHES)
