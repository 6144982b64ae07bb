"""Signing in and out, and what other sites and other people cannot do."""

from __future__ import annotations

import asyncio
from http.cookies import SimpleCookie
from importlib.resources import files

import aiohttp
import pytest
from yarl import URL

from reverie.cli.operate.console import create_console_link
from reverie.domain.access.principals import KeyRole
from reverie.domain.core.errors import QuotaExceeded
from reverie.store.platform.api_keys import list_keys, revoke_key
from reverie.store.platform.console_sessions import ConsoleSessionStore, parse_token
from reverie.testing.servers import DatabaseUrls
from reverie_services.console import sign_in
from reverie_services.console.sign_in import MAX_FAILURES, SignInLimiter
from tests.console.pages_over_http import COOKIE, visiting
from tests.support.stack import Stack
from tests.support.store_setup import open_store_apart
from tests.support.tables import rows


async def test_a_key_signs_in_and_stands_in_no_page_and_no_cookie(stack: Stack) -> None:
    async with visiting(stack) as visitor:
        answer = await visitor.sign_in(stack.key)
        cookie = SimpleCookie(answer.headers["Set-Cookie"])[COOKIE]
        page = await visitor.get("/keys")
    assert (answer.status, answer.headers["Location"]) == (303, "/console")
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/console")
    assert page.status == 200
    assert stack.key not in page.body + cookie.value + answer.body


async def test_a_gateway_behind_https_marks_its_cookie_as_secure(stack: Stack) -> None:
    async with visiting(stack) as visitor:
        plain = await visitor.sign_in(stack.key)
        behind = await visitor.post(
            "/sign-in", {"key": stack.key}, **{"X-Forwarded-Proto": "https"}
        )
    assert ["Secure" in answer.headers["Set-Cookie"] for answer in (plain, behind)] == [False, True]


async def test_an_unknown_key_neither_signs_in_nor_makes_a_link(stack: Stack) -> None:
    async with visiting(stack) as visitor:
        for key in ("", "rv_nobody", "a\nb", "x" * 9000):
            answer = await visitor.sign_in(key)
            after = await visitor.get()
            assert answer.status == 401
            assert "Set-Cookie" not in answer.headers
            assert (after.status, after.headers["Location"]) == (
                303,
                "/console/sign-in?next=/console",
            )
    assert (await stack.call("POST", "/console/links", key="rv_nobody")).status == 401


async def test_an_address_that_fails_too_often_has_to_wait(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "MAX_FAILURES", 1)
    async with visiting(stack) as visitor:
        await visitor.sign_in("rv_nobody")
        answer = await visitor.sign_in(stack.key)
        page = await visitor.get("/sign-in")
    assert answer.status == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert "failed sign-ins" in answer.page.text
    assert "Set-Cookie" not in answer.headers
    assert page.status == 200


def test_failures_of_one_address_are_counted_for_a_minute() -> None:
    now = [100.0]
    limiter = SignInLimiter(lambda: now[0])
    for _ in range(MAX_FAILURES):
        limiter.check("10.0.0.1")
        limiter.record_failure("10.0.0.1")
        now[0] += 1
    with pytest.raises(QuotaExceeded) as error:
        limiter.check("10.0.0.1")
    assert error.value.retry_after == 60 - MAX_FAILURES
    limiter.check("10.0.0.2")
    now[0] = 161.0
    limiter.check("10.0.0.1")


async def test_a_link_signs_in_once_and_only_by_its_button(stack: Stack) -> None:
    reply = await stack.post("/console/links", None)
    code = reply["path"].partition("code=")[2]
    async with visiting(stack) as visitor:
        previews = [await visitor.get("/sign-in", code=code) for _ in range(2)]
        first = await visitor.post("/sign-in", previews[0].page.form("/console/sign-in"))
        inside = await visitor.get()
    async with visiting(stack) as visitor:
        second = await visitor.post("/sign-in", {"code": code})
    assert [answer.status for answer in (*previews, first, inside, second)] == [
        *(200, 200, 303, 200, 401)
    ]


async def test_a_link_is_no_session_and_a_session_no_link(stack: Stack) -> None:
    code = (await stack.post("/console/links", None))["path"].partition("code=")[2]
    async with visiting(stack, stack.key) as visitor:
        session = visitor.cookie()
    async with visiting(stack) as visitor:
        by_session = await visitor.post("/sign-in", {"code": session})
        visitor.plant(code)
        by_code = await visitor.get()
    assert (by_session.status, by_code.status) == (401, 303)


async def test_signing_in_gives_a_new_session_and_ends_the_one_before(stack: Stack) -> None:
    planted = f"{stack.number()}.{'x' * 43}"
    async with visiting(stack, stack.key) as visitor, visiting(stack) as thief:
        for before in (visitor.cookie(), planted):
            visitor.plant(before)
            await visitor.sign_in(stack.key)
            assert visitor.cookie() != before
            thief.plant(before)
            assert (await thief.get()).status == 303


async def test_signing_out_ends_the_session_on_the_server(stack: Stack) -> None:
    async with visiting(stack, stack.key) as visitor:
        cookie, csrf = visitor.cookie(), await visitor.csrf()
        out = await visitor.post("/sign-out", {"csrf": csrf})
        visitor.plant(cookie)
        after = await visitor.get()
    assert (out.status, after.status) == (303, 303)
    assert out.headers["Location"] == "/console/sign-in"


async def test_a_session_ends_with_its_key(stack: Stack) -> None:
    key = stack.key_of(role=KeyRole.READER)
    [key_id] = [
        each.id
        for each in list_keys(stack.admin_url)
        if each.tenant == stack.tenant and each.role == "reader"
    ]
    async with visiting(stack, key) as visitor:
        assert (await visitor.get()).status == 200
        revoke_key(stack.admin_url, key_id)
        assert (await visitor.get()).status == 303


async def test_a_session_of_one_tenant_opens_no_other(stack: Stack) -> None:
    other = stack.apart()
    async with visiting(stack, stack.key) as visitor:
        secret = visitor.cookie().partition(".")[2]
        visitor.plant(f"{other.number()}.{secret}")
        assert (await visitor.get()).status == 303


async def test_sessions_expire_and_the_table_holds_no_key(shared_database: DatabaseUrls) -> None:
    async with open_store_apart(shared_database, size=2) as store:
        sessions, tenant = ConsoleSessionStore(store.db), store.me.tenant
        expired = await sessions.create(tenant, "rv_secret-of-one", 0)
        running = await sessions.create(tenant, "rv_secret-of-one", 60)
        keys = await sessions.find_key(expired), await sessions.find_key(running)
    stored = rows(shared_database.admin_url, "select * from console_session")
    assert keys == (None, "rv_secret-of-one")
    assert [row for row in stored if b"secret-of-one" in repr(row).encode()] == []
    assert str(running).partition(".")[2] not in repr(stored)


def test_only_the_form_of_a_token_is_looked_up() -> None:
    good = f"12.{'a' * 43}"
    assert str(parse_token(good)) == good
    bad = ["", "12", f"12.{'a' * 42}", f"-1.{'a' * 43}", f"1' or 1=1.{'a' * 43}", f"{good}\n"]
    assert [text for text in bad if parse_token(text) is not None] == []


STYLES = (files("reverie_services.console") / "static/console.css").read_text()
ELSEWHERE = (
    "https://evil.example/console",
    "//evil.example/console",
    "/\\evil.example",
    "/console\\..\\evil",
    "/consoles",
    "/v1/memories",
    "javascript:alert(1)",
    "/console@evil.example",
    "\t//evil.example",
    "/console/..//evil.example",
    "/console\r\nSet-Cookie: a=b",
)


async def test_signing_in_leads_to_no_other_place(stack: Stack) -> None:
    async with visiting(stack) as visitor:
        for target in ELSEWHERE:
            answer = await visitor.post("/sign-in", {"key": stack.key, "next": target})
            assert answer.headers["Location"] == "/console", target
            assert "a=b" not in answer.headers["Set-Cookie"], target


async def test_a_form_needs_the_token_of_its_own_sign_in(stack: Stack) -> None:
    memory = (await stack.post("/v1/remember", {"content": "The gull sleeps on the sluice."}))["id"]
    async with visiting(stack, stack.key) as one, visiting(stack, stack.key) as two:
        foreign, own = await two.csrf(), await one.csrf()
        refused = [
            await one.post("/do/pin", {"id": memory, **fields})
            for fields in ({}, {"csrf": ""}, {"csrf": foreign}, {"csrf": own.upper()})
        ]
        unchanged = await stack.get(f"/v1/memories/{memory}")
        done = await one.post("/do/pin", {"id": memory, "csrf": own})
    assert [answer.status for answer in refused] == [403] * 4
    assert unchanged["pinned"] is False
    assert done.status == 303


async def test_a_form_of_another_site_is_refused(stack: Stack) -> None:
    async with visiting(stack, stack.key) as visitor:
        csrf = await visitor.csrf()
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "http://127.0.0.1:1"},
        ):
            out = await visitor.post("/sign-out", {"csrf": csrf}, **headers)
            login = await visitor.post("/sign-in", {"key": stack.key}, **headers)
            still = await visitor.get("/facts")
            assert (out.status, login.status, still.status) == (403, 403, 200), headers


async def test_a_form_must_be_sent_as_a_form(stack: Stack) -> None:
    async with visiting(stack, stack.key) as visitor:
        for body in (b"{}", b"\xff\xfe=1"):
            media_type = (
                "application/json" if body == b"{}" else "application/x-www-form-urlencoded"
            )
            async with visitor.http.post(
                f"{stack.url}/console/sign-out", data=body, headers={"Content-Type": media_type}
            ) as answer:
                assert answer.status == 400


async def test_only_listed_files_are_served(stack: Stack) -> None:
    address = f"{stack.url}/console/static/"
    names = ("..%2fhandler.py", "vendor/", "console", "secret.css", "../static/x.css")
    async with aiohttp.ClientSession() as http:
        for name in names:
            url = URL(address + name, encoded=True)
            async with http.get(url, allow_redirects=False) as answer:
                assert answer.status == 404, name
        async with http.get(f"{address}console.css") as answer:
            tag, css = answer.headers["ETag"], await answer.text()
        async with http.get(f"{address}console.css", headers={"If-None-Match": tag}) as answer:
            assert answer.status == 304
    assert css == STYLES


async def test_the_link_that_reverie_up_prints_signs_in(stack: Stack) -> None:
    link = await asyncio.to_thread(create_console_link, stack.url, stack.key, "")
    assert link is not None
    async with visiting(stack) as visitor:
        shown = await visitor.get(link.removeprefix(f"{stack.url}/console"))
        answer = await visitor.post("/sign-in", shown.page.form("/console/sign-in"))
        assert (answer.status, (await visitor.get()).status) == (303, 200)
    for key in (None, "rv_nobody"):
        assert await asyncio.to_thread(create_console_link, stack.url, key, "") is None
