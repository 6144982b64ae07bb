"""What will be needed: the files that are touched next, and what is known of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from reverie.domain.access.principals import KeyRole
from tests.support.stack import Stack, eventually

COMMITS = (
    ("main", ("src/cart/price.py", "src/cart/tax.py", "tests/test_price.py")),
    ("main", ("docs/setup.md",)),
    ("main", ("src/cart/price.py", "src/cart/tax.py")),
    ("main", ("src/mail/send.py",)),
    ("vat", ("src/cart/price.py", "src/vat/rates.py")),
)
TAX = "Taxes are rounded per line in src/cart/tax.py, never on the sum."


async def _history(stack: Stack) -> None:
    """Pushes the commits, a day apart."""
    start = datetime.now(UTC) - timedelta(days=len(COMMITS))
    for day, (branch, paths) in enumerate(COMMITS):
        sha = f"{day + 1:040x}"
        at = (start + timedelta(days=day)).isoformat()
        commit = {"sha": sha, "subject": "Rework", "committed_at": at}
        files = [{"path": path, "status": "modified"} for path in paths]
        change = {"project": "shop", "branch": branch, "default_branch": "main", "after": sha}
        await stack.post("/v1/git/changes", {**change, "commits": [commit], "files": files})
    body = {"content": TAX, "scope": "project/shop", "kind": "decision"}
    await stack.post("/v1/remember", {**body, "git": {"files": ["src/cart/tax.py"]}})
    mail = {"content": "Mails go out in batches, see src/mail/send.py.", "kind": "bug"}
    await stack.post("/v1/remember", {**mail, "scope": "project/shop"})
    await stack.settled()


async def _predict(stack: Stack, key: str | None = None, **fields: Any) -> Any:
    body = {"project": "shop", "edited": ["src/cart/price.py"], "limit": 3, **fields}
    return await stack.post("/v1/predict", body, key=key)


async def test_the_files_of_the_next_edit_are_told_with_what_is_known_of_them(
    stack: Stack,
) -> None:
    await _history(stack)
    answer = await _predict(stack)
    paths = [file["path"] for file in answer["files"]]
    assert {"src/cart/price.py", "src/cart/tax.py"} <= set(paths)
    [tax] = [memory for memory in answer["memories"] if memory["content"] == TAX]
    assert tax["reason"].startswith("touches src/cart/tax.py, which ")
    assert "src/vat/rates.py" not in paths
    on_branch = await _predict(stack, branch="vat", limit=4)
    assert "src/vat/rates.py" in {file["path"] for file in on_branch["files"]}
    tested = await _predict(stack, edited=[], tests=["tests/test_price.py"])
    assert "src/cart/price.py" in {file["path"] for file in tested["files"]}


async def test_an_edit_is_told_of_the_file_that_usually_follows(stack: Stack) -> None:
    await _history(stack)
    start = {"agent": "ann", "project": "shop", "branch": "main", "context_shown": False}
    session = (await stack.post("/v1/sessions/start", start))["session"]
    edit = {"session": session, "query": "src/cart/price.py", "before": "edit"}

    async def asked() -> Any:
        # On a busy machine it answers in time without them; nothing counts as given then.
        answer = await stack.post("/v1/preflow", edit)
        return None if answer["degraded"] else answer

    answer = await eventually(asked)
    assert [item["text"] for item in answer["items"]][:1] == [TAX]
    assert "touches src/cart/tax.py, which" in answer["items"][0]["reason"]
    again = await stack.post("/v1/preflow", edit)
    assert again["items"] == []
    by_session = await _predict(stack, project=None, session=session)
    assert TAX in {memory["content"] for memory in by_session["memories"]}


async def test_a_prediction_shows_nothing_that_the_key_may_not_read(stack: Stack) -> None:
    await _history(stack)
    scopes = ("project/other/*",)
    other = stack.key_of(reads=scopes, writes=scopes, role=KeyRole.WRITER)
    body = {"project": "shop", "edited": ["src/cart/price.py"]}
    assert (await stack.call("POST", "/v1/predict", body, other)).status == 403
    # The key of the project alone knows nothing of its branches.
    of_main = stack.key_of(reads=("project/shop",), role=KeyRole.READER)
    told = await _predict(stack, of_main, branch="vat", limit=20)
    assert "src/vat/rates.py" not in str(told)
    assert (await _predict(stack, of_main))["memories"]
    both = await stack.call("POST", "/v1/predict", {**body, "session": "0" * 32})
    neither = await stack.call("POST", "/v1/predict", {"edited": ["a.py"]})
    assert (both.status, neither.status) == (422, 422)
    assert both.body["detail"].endswith("not both")
    assert neither.body["detail"].endswith("give a project or a session")
