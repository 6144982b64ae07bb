"""Clients that call the system under faults and record each call's outcome."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

import aiohttp

from chaos.history import Action, ClientCall, Outcome, ReadResult, markers_in

_WORDS = """
amber anchor basil beacon birch bramble canyon cedar cinder clover cobalt copper coral
cypress delta drift ember falcon fern fjord flint garnet glacier granite harbor hazel heron
indigo iris jasper juniper kestrel lagoon lantern laurel linden lotus maple marble meadow
mesa nectar nettle oasis obsidian olive onyx opal orchid osprey pebble pepper petrel pine
plume poplar prairie quartz quill raven reef ridge sable saffron sage sierra slate sorrel
spruce sumac talon teal thicket thistle tundra umber velvet walnut willow yarrow zephyr
"""
WORDS = _WORDS.split()
RETRY_SECONDS = 90.0
"""Seconds for which a client asks again, with the same idempotency key."""
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=15)
KEYS = 4


@dataclass
class Log:
    """What all clients noted."""

    calls: list[ClientCall] = field(default_factory=list)
    reads: list[ReadResult] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Answers by their status; `none` where there was none."""
    unexpected: list[str] = field(default_factory=list)
    """Answers that no client should ever get."""

    @property
    def acknowledged(self) -> int:
        """Deeds that were done, and reads that were answered."""
        return sum(call.outcome == Outcome.DONE for call in self.calls) + len(self.reads)


@dataclass
class OwnMemory:
    """A memory as its client knows it; `is_certain` where nothing about it is unknown."""

    id: str
    marker: str
    version: int
    is_certain: bool = True


@dataclass
class Client:
    """One agent of a tenant. Its memories are its own; the keys are shared by the tenant's."""

    http: aiohttp.ClientSession
    gateway: str
    key: str
    tenant: str
    number: int
    log: Log
    rng: Random
    own_memories: list[OwnMemory] = field(default_factory=list)
    links: dict[str, tuple[str, str]] = field(default_factory=dict)
    session: str = ""
    made: int = 0

    async def act_at_random(self) -> None:
        """One call or read, chosen at random."""
        acts = (
            (self.remember, 22), (self.edit, 12), (self.replace, 7), (self.link, 9),
            (self.unlink, 3), (self.forget, 3), (self.say, 12), (self.change, 4),
            (self.judge, 6), (self.keep, 5), (self.start, 3), (self.read, 16), (self.recall, 12),
        )  # fmt: skip
        chosen = self.rng.choices([act for act, _ in acts], [weight for _, weight in acts])[0]
        await chosen()

    async def remember(self) -> None:
        """A memory of its own about one file."""
        marker, path = self._marker(), self._path()
        body = {"content": self._text(marker, path), "scope": "project/chaos", "kind": "decision"}
        began = time.monotonic()
        outcome, answer = await self._post("/v1/remember", body)
        memory = str(answer.get("id", ""))
        self._record(Action.REMEMBER, marker, outcome, memory=memory, path=path, began=began)
        if outcome == Outcome.DONE:
            self.own_memories.append(OwnMemory(memory, marker, int(answer["version"])))

    async def replace(self) -> None:
        """What stands under a key that all of the tenant write to."""
        marker, key = self._marker(), f"shared-{self.rng.randrange(KEYS)}"
        body = {
            "content": self._text(marker, ""), "scope": "project/chaos", "kind": "decision",
            "key": key, "supersede_reason": "newer",
        }  # fmt: skip
        outcome, answer = await self._post("/v1/remember", body)
        self._record(Action.REPLACE, marker, outcome, memory=str(answer.get("id", "")), key=key)

    async def edit(self) -> None:
        """New words for one of its memories, guarded by its version."""
        if not (one := self._choose_memory()):
            return
        marker = self._marker()
        content = self._text(marker, "")
        path, guard = f"/v1/memories/{one.id}", {"If-Match": f'"{one.version}"'}
        status, answer = await self._call_until_answered("PATCH", path, {"content": content}, guard)
        if 200 <= status < 300:
            one.version, one.marker = int(answer["version"]), marker
            self._record(Action.EDIT, marker, Outcome.DONE, memory=one.id)
            return
        if not status:
            one.is_certain = False
            self._record(Action.EDIT, marker, Outcome.UNKNOWN, memory=one.id)
            return
        # Somebody else's change (a link, a merge, an edit that was carried out unheard).
        found, now = await self._call_until_answered("GET", path)
        if found == 200:
            landed = marker in now["content"]
            one.version = int(now["version"])
            one.marker = marker if landed else one.marker
            outcome = Outcome.DONE if landed else Outcome.REFUSED
            self._record(Action.EDIT, marker, outcome, memory=one.id)
        else:
            one.is_certain = False
            self._record(Action.EDIT, marker, Outcome.UNKNOWN, memory=one.id)

    async def judge(self) -> None:
        """One of its memories, found right or put into other words; the reason is a marker."""
        if not (one := self._choose_memory()):
            return
        marker, worded = self._marker(), self.rng.random() < 0.5
        body = {"verdict": "approve", "reason": marker}
        if worded:
            body |= {"verdict": "edit", "content": self._text(marker, "")}
        outcome, answer = await self._post(f"/v1/memories/{one.id}/feedback", body)
        told = bool(answer.get("changed"))
        self._record(Action.JUDGE, marker, outcome, memory=one.id, changed=told)
        if worded:
            self._record(Action.EDIT, marker, outcome, memory=one.id)
        if outcome == Outcome.DONE:
            one.version, one.marker = int(answer["version"]), marker if worded else one.marker
        elif outcome == Outcome.UNKNOWN:
            one.is_certain = False

    async def keep(self) -> None:
        """Another value under its own key of the vault, whose version counts them."""
        marker, key = self._marker(), f"last-{self.number}"
        path = f"/v1/vault/{key}?scope=project/chaos"
        outcome, _ = await self._post(path, {"value": marker}, "PUT")
        self._record(Action.KEEP, marker, outcome, key=key)

    async def start(self) -> None:
        """A session with a person whom nobody else is."""
        marker = self._marker()
        body = {"agent": f"agent-{self.number}", "project": "chaos", "user": marker}
        outcome, answer = await self._post("/v1/sessions/start", body)
        self._record(Action.START, marker, outcome)
        if outcome == Outcome.DONE and not self.session:
            self.session = str(answer["session"])

    async def link(self) -> None:
        """Two of its memories; each pair once."""
        if len(self.own_memories) < 2:
            return
        one, other = self.rng.sample(self.own_memories, 2)
        ends = (one.id, other.id)
        if ends in self.links.values():
            return
        body = {"from": one.id, "to": other.id, "type": "depends_on"}
        outcome, answer = await self._post("/v1/links", body)
        self._record(Action.LINK, self._marker(), outcome, memory=one.id, other=other.id)
        if outcome == Outcome.DONE:
            self.links[str(answer["id"])] = ends

    async def unlink(self) -> None:
        """One of its links."""
        if not self.links:
            return
        link = self.rng.choice(list(self.links))
        ends = self.links.pop(link)
        status, _ = await self._call_until_answered("DELETE", f"/v1/links/{link}")
        outcome = Outcome.DONE if status in {200, 204, 404} else Outcome.UNKNOWN
        self._record(Action.UNLINK, self._marker(), outcome, memory=ends[0], other=ends[1])

    async def forget(self) -> None:
        """One of its memories, for good."""
        if len(self.own_memories) < 5:
            return
        one = self.own_memories.pop(self.rng.randrange(len(self.own_memories)))
        status, _ = await self._call_until_answered("DELETE", f"/v1/memories/{one.id}")
        outcome = Outcome.DONE if status in {200, 204, 404} else Outcome.UNKNOWN
        self._record(Action.FORGET, self._marker(), outcome, memory=one.id)

    async def say(self) -> None:
        """A few turns of a session, which ends now and then."""
        if not self.session:
            await self.start()
        if not self.session:
            return
        markers = [self._marker() for _ in range(self.rng.randint(1, 4))]
        turns = [
            {"role": role, "content": f"Remember: {self._text(marker, '')}", "external_id": marker}
            for marker, role in zip(markers, ("user", "assistant") * 2, strict=False)
        ]
        outcome, _ = await self._post("/v1/turns", {"session": self.session, "turns": turns})
        for marker in markers:
            self._record(Action.SAY, marker, outcome)
        if self.rng.random() < 0.25:
            await self._post(f"/v1/sessions/{self.session}/end", {})
            self.session = ""

    async def change(self) -> None:
        """A commit that touches one of the files."""
        path, sha = self._path(), f"{self.rng.getrandbits(160):040x}"
        at = datetime.now(UTC).isoformat()
        body = {
            "project": "chaos", "branch": "main", "after": sha,
            "commits": [{"sha": sha, "subject": "change", "committed_at": at}],
            "files": [{"path": path, "status": "modified"}],
        }  # fmt: skip
        began = time.monotonic()
        outcome, _ = await self._post("/v1/git/changes", body)
        self._record(Action.CHANGE, sha, outcome, path=path, began=began)

    async def read(self) -> None:
        """One of its memories: what it wrote last must be there."""
        if not (one := self._choose_memory()):
            return
        status, body = await self._call_once("GET", f"/v1/memories/{one.id}")
        if status == 200:
            seen = markers_in(json.dumps(body))
            self.log.reads.append(ReadResult(self.tenant, seen, one.marker))

    async def recall(self) -> None:
        """One of its memories by the rarest of its words, or whatever a few words find."""
        one = self._choose_memory()
        query = one.marker if one else " ".join(self.rng.sample(WORDS, 3))
        status, body = await self._call_once("POST", "/v1/recall", {"query": query, "limit": 5})
        if status != 200:
            return
        seen = markers_in(json.dumps(body))
        if one is None or body["degraded"] or one.marker in seen:
            self.log.reads.append(ReadResult(self.tenant, seen))
            return
        told = await self._describe_missing(one, body)
        self.log.reads.append(ReadResult(self.tenant, seen, one.marker, told))

    async def _describe_missing(self, one: OwnMemory, answer: Mapping[str, Any]) -> str:
        """What there is to say of a memory that recall did not show."""
        status, now = await self._call_once("GET", f"/v1/memories/{one.id}")
        scores = [round(shown["score"], 3) for shown in answer["memories"]]
        facts = {name: now.get(name) for name in ("status", "version", "staleness", "confidence")}
        return f"{answer['search_mode']} {scores} {status} {facts} {answer['trace_id']}"

    def _choose_memory(self) -> OwnMemory | None:
        certain = [one for one in self.own_memories if one.is_certain]
        return self.rng.choice(certain) if certain else None

    def _marker(self) -> str:
        self.made += 1
        return f"mk{self.tenant}x{self.number}x{self.made}"

    def _path(self) -> str:
        return f"src/part{self.rng.randrange(12)}/unit{self.rng.randrange(12)}.py"

    def _text(self, marker: str, path: str) -> str:
        words = " ".join(self.rng.sample(WORDS, 14))
        return f"{marker} {words}" + (f", as {path} does." if path else ".")

    def _record(self, action: Action, marker: str, outcome: Outcome, **more: Any) -> None:
        ended = time.monotonic()
        self.log.calls.append(ClientCall(action, self.tenant, marker, outcome, ended=ended, **more))

    async def _post(
        self, path: str, body: Any, method: str = "POST"
    ) -> tuple[Outcome, Mapping[str, Any]]:
        """Asked again under the same idempotency key until there is an answer."""
        key = {"Idempotency-Key": f"{self.tenant}-{self.number}-{self.rng.getrandbits(64):x}"}
        status, answer = await self._call_until_answered(method, path, body, key)
        if 200 <= status < 300:
            return Outcome.DONE, answer
        return (Outcome.REFUSED if 400 <= status < 500 else Outcome.UNKNOWN), answer

    async def _call_until_answered(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, Any]]:
        """The first answer that says what became of it; 0 where none came in time."""
        until = time.monotonic() + RETRY_SECONDS
        pause = 0.1
        while time.monotonic() < until:
            status, answer = await self._call_once(method, path, body, headers)
            if status and status < 500 and status not in {408, 429} and not _is_in_progress(answer):
                return status, answer
            await asyncio.sleep(pause)
            pause = min(2.0, pause * 2)
        return 0, {}

    async def _call_once(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, Any]]:
        given = {"Authorization": f"Bearer {self.key}", **(headers or {})}
        try:
            async with self.http.request(
                method, self.gateway + path, json=body, headers=given, timeout=REQUEST_TIMEOUT
            ) as answer:
                text = await answer.text()
                self.log.answers[str(answer.status)] += 1
                decoded = json.loads(text) if text else {}
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            self.log.answers["none"] += 1
            return 0, {}
        if answer.status == 500 or (400 <= answer.status < 500 and _is_unexpected(answer.status)):
            self.log.unexpected.append(f"{method} {path}: {answer.status} {text[:300]}")
        return answer.status, decoded


def _is_in_progress(answer: Mapping[str, Any]) -> bool:
    """Whether the first request of this idempotency key is still under way."""
    return "is being answered" in str(answer.get("detail"))


def _is_unexpected(status: int) -> bool:
    return status not in {404, 408, 409, 412, 425, 429}
