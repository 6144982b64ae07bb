"""Dead letters over REST: an administrator of the tenant lists, reads and replays its own."""

from __future__ import annotations

import pytest

from reverie.domain.access.principals import KeyRole
from tests.support.dead_letters import bury
from tests.support.stack import Stack

LETTERS = "/v1/admin/dead-letters"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


async def test_a_letter_is_listed_read_and_sent_again_once(stack: Stack) -> None:
    first, second = await bury(stack, "no such scope"), await bury(stack)
    listed = await stack.get(f"{LETTERS}?limit=1")
    [letter] = listed["items"]
    assert (letter["seq"], letter["reason"], letter["deliveries"]) == (first, "no such scope", 5)
    rest = await stack.get(f"{LETTERS}?limit=1&cursor={listed['next']}")
    assert ([each["seq"] for each in rest["items"]], rest.get("next")) == ([second], None)
    assert (await stack.get(f"{LETTERS}/{first}"))["data"] == "{}"
    assert await stack.post(f"{LETTERS}/{first}/replay", None) == {"replayed": 1}
    assert (await stack.call("POST", f"{LETTERS}/{first}/replay")).status == 404
    assert [each["seq"] for each in (await stack.get(LETTERS))["items"]] == [second]


async def test_no_other_tenant_sees_or_sends_a_letter(stack: Stack) -> None:
    number, other = await bury(stack), stack.apart()
    assert (await stack.get(LETTERS, key=other.key))["items"] == []
    for method, path in (("GET", f"{LETTERS}/{number}"), ("POST", f"{LETTERS}/{number}/replay")):
        assert (await stack.call(method, path, key=other.key)).status == 404
    assert [each["seq"] for each in (await stack.get(LETTERS))["items"]] == [number]


@pytest.mark.parametrize(
    "rights",
    [
        {"role": KeyRole.READER},
        {"role": KeyRole.WRITER},
        {"role": KeyRole.CI},
        {"role": KeyRole.ADMIN, "reads": ["project/shop"], "writes": ["project/shop"]},
    ],
)
async def test_only_an_administrator_of_all_scopes_may(
    stack: Stack, rights: dict[str, object]
) -> None:
    number, key = await bury(stack), stack.key_of(**rights)
    calls = [("GET", ""), ("GET", f"/{number}"), ("POST", f"/{number}/replay")]
    assert [
        (await stack.call(method, LETTERS + path, key=key)).status for method, path in calls
    ] == [403] * 3


async def test_a_letter_shows_no_credential(stack: Stack) -> None:
    number = await bury(stack, f"refused {SECRET}", f'{{"token": "{SECRET}"}}'.encode())
    answers = [await stack.get(LETTERS), await stack.get(f"{LETTERS}/{number}")]
    assert SECRET not in str(answers)
    assert "REDACTED" in answers[1]["data"]


@pytest.mark.parametrize("number", ["0", "-1", "x", "99999999999999999999", "1.5"])
async def test_what_is_no_number_is_refused(stack: Stack, number: str) -> None:
    assert (await stack.call("GET", f"{LETTERS}/{number}")).status == 422
