"""A browser without scripts: signs in, gets pages, reads their forms and posts them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import aiohttp
from yarl import URL

from tests.support.stack import Stack

COOKIE = "reverie_console"


class ParsedPage(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._silent = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._silent += tag in {"style", "script"}

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in {"style", "script"}

    def handle_data(self, data: str) -> None:
        self.text += "" if self._silent else data

    def find(self, tag: str, **attrs: str) -> list[dict[str, str]]:
        """The attributes of all elements of that name that have these attributes."""
        return [
            found
            for name, found in self.elements
            if name == tag and all(found.get(key) == value for key, value in attrs.items())
        ]

    def form(self, action: str) -> dict[str, Any]:
        """The fields that the form with that action would send, its lists as lists."""
        fields: dict[str, Any] = {}
        inside = False
        for tag, attrs in self.elements:
            if tag == "form":
                inside = attrs.get("action") == action
            is_sent = attrs.get("type") != "checkbox" or "checked" in attrs
            if inside and tag == "input" and attrs.get("name") and is_sent:
                fields.setdefault(attrs["name"], []).append(attrs.get("value", ""))
        assert fields, f"no form to {action}"
        return fields


@dataclass
class Answer:
    """A response: its status, headers and bytes, the same as text, and as a page."""

    status: int
    headers: Mapping[str, str]
    data: bytes
    body: str = field(init=False)
    page: ParsedPage = field(init=False)

    def __post_init__(self) -> None:
        self.body = self.data.decode(errors="replace")
        is_page = self.headers.get("Content-Type", "").startswith("text/html")
        self.page = ParsedPage(self.body if is_page else "")


@dataclass
class ConsoleVisitor:
    """A person at a browser; cookies are held as a browser holds them."""

    url: str
    http: aiohttp.ClientSession

    async def get(self, path: str = "", **params: Any) -> Answer:
        """A page, without following a redirect."""
        async with self.http.get(
            f"{self.url}/console{path}", params=params, allow_redirects=False
        ) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def post(self, path: str, fields: Mapping[str, Any], **headers: str) -> Answer:
        """Posts a form, without following the redirect."""
        pairs = [
            (name, each)
            for name, value in fields.items()
            for each in (value if isinstance(value, list) else [value])
        ]
        async with self.http.post(
            f"{self.url}/console{path}",
            data=aiohttp.FormData(pairs),
            headers=headers,
            allow_redirects=False,
        ) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def sign_in(self, key: str) -> Answer:
        """Signs in by a key."""
        return await self.post("/sign-in", {"key": key})

    async def csrf(self) -> str:
        """The token that forms of this sign-in carry."""
        answer = await self.get("/facts")
        return str(answer.page.form("/console/sign-out")["csrf"][0])

    async def act(self, name: str, memory: str, **fields: Any) -> Answer:
        """Opens the form of an action on an id, fills it in and sends it."""
        shown = await self.get(f"/do/{name}", id=memory, next="/console/memories")
        assert shown.status == 200, shown.body
        return await self.post(f"/do/{name}", {**shown.page.form(f"/console/do/{name}"), **fields})

    async def follow_form(self, address: str, action: str) -> Answer:
        """Opens a page and sends its form as it stands."""
        shown = await self.get(address.removeprefix("/console"))
        return await self.post(action.removeprefix("/console"), shown.page.form(action))

    def plant(self, value: str) -> None:
        """Puts a cookie of a sign-in in place of the own one."""
        self.http.cookie_jar.clear()
        self.http.cookie_jar.update_cookies({COOKIE: value}, URL(f"{self.url}/console/sign-in"))

    def cookie(self) -> str:
        """The cookie of the sign-in."""
        return next((each.value for each in self.http.cookie_jar if each.key == COOKIE), "")


@asynccontextmanager
async def visiting(stack: Stack, key: str | None = None) -> AsyncIterator[ConsoleVisitor]:
    """A visitor; with a key one who is signed in."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as http:
        visitor = ConsoleVisitor(stack.url, http)
        if key is not None:
            assert (await visitor.sign_in(key)).status == 303
        yield visitor
