"""Who contradicts what stands is told at once what that is, and to ask the user."""

from __future__ import annotations

from typing import Any

import pytest

from reverie.domain.access.principals import KeyRole
from reverie_services.ingest.routes import writes
from tests.support.stack import Stack

SCOPE = "project/shop"
STANDING = "The nightly import runs synchronously."
OTHER = "The nightly import runs asynchronously."


async def _remember(stack: Stack, content: str, **more: Any) -> dict[str, Any]:
    body = {"content": content, "scope": SCOPE, "kind": "convention", **more.pop("fields", {})}
    return dict(await stack.post("/v1/remember", body, **more))


async def test_a_contradiction_is_named_in_the_answer_with_what_to_do(stack: Stack) -> None:
    standing = await _remember(stack, STANDING)
    assert standing["conflicts"] == []
    await _remember(stack, "The nightly import has a log of its own.")
    answer = await _remember(stack, OTHER)
    [conflict] = answer["conflicts"]
    assert (conflict["id"], conflict["content"]) == (standing["id"], STANDING)
    assert "asynchronously" in conflict["reason"]
    assert any("ask your user which of them holds" in hint for hint in answer["hints"])
    # It is stored all the same, and who repeats it is not asked again.
    assert answer["status"] == "created"
    assert (await _remember(stack, OTHER))["conflicts"] == []


async def test_what_is_replaced_under_its_key_or_lies_elsewhere_is_no_conflict(
    stack: Stack,
) -> None:
    await _remember(stack, STANDING, fields={"key": "import-mode"})
    elsewhere = await _remember(stack, OTHER, fields={"scope": "project/other"})
    assert elsewhere["conflicts"] == []
    fields = {"key": "import-mode", "supersede_reason": "the user said so"}
    replaced = await _remember(stack, OTHER, fields=fields)
    assert (replaced["status"], replaced["conflicts"]) == ("superseded", [])


async def test_a_key_that_may_only_write_learns_nothing_of_what_stands(stack: Stack) -> None:
    await _remember(stack, STANDING)
    blind = stack.key_of(role=KeyRole.WRITER, reads=("project/other",), writes=(SCOPE,))
    assert (await _remember(stack, OTHER, key=blind))["conflicts"] == []


async def test_a_burst_of_writes_is_stored_without_a_search_for_conflicts(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _remember(stack, STANDING)
    with monkeypatch.context() as burst:
        burst.setattr(writes, "CONFLICT_SEARCH_BYTES", 0)
        answer = await _remember(stack, OTHER)
    assert (answer["status"], answer["conflicts"]) == ("created", [])
    again = await _remember(stack, "The nightly import no longer runs asynchronously.")
    assert again["conflicts"]
