"""Publishes the events of a turn while it runs, and gives them to watchers from any position."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from uuid import UUID

import structlog

from reverie.bus.interface import MessageBus, StoredMessage
from reverie.contracts.engine import EngineEvent
from reverie.contracts.events import ENGINE_STREAM, engine_subject
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.domain.redaction.redactor import Redactor
from reverie.runtime.http.streaming import iterate_with_ticks
from reverie.store.engine.turns import ClaimedTurn, EndedTurn
from reverie.store.platform.event_visibility import EventVisibility, has_token_expired
from reverie_services.engine.redaction import make_storable

HEARTBEAT_SECONDS = 5.0
KEY_CHECK_SECONDS = 15.0
MAX_WATCHERS = 1_000
"""Clients that may watch at one engine process: a quarter of them of one key."""
SSE_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-store",
}
DELTAS = ("text_delta", "thinking_delta")
_MAX_RETRY_SECONDS = 2.0
MAX_TEXT = 80_000
"""Characters of a text in one event: escaped, they fit into a message of the bus."""
_MAX_HELD = 16_384
"""Characters of one word after which it is sent unfinished."""
_MAX_LINE = 4_000
_CONTEXT = 500
"""Characters before a word that may show that it is a credential."""
_WORD_END = re.compile(r"[\s\u2e80-\uffef]")
_BLOCK_ENDS = {
    "-----BEGIN": re.compile(r"-----END[^-\n]*-----"),
    "PuTTY-User-Key-File-": re.compile(r"Private-MAC:\s*[^\s:]+\s"),
    "": re.compile(r"\}"),
}
"""The end of a credential of several lines, by its beginning; the last is a key in JSON."""
_BLOCK = re.compile(r"(-----BEGIN|PuTTY-User-Key-File-)|\"(?:kty|d|p|q|dp|dq|qi|k)\\?\"\s*:")

log = structlog.get_logger("reverie.engine")


@dataclass
class DeltaRedactor:
    """Passes a streamed text on word by word, without the credentials in it.

    A word is redacted together with the text before it, which may show that it is a credential.
    What may be a credential of several lines is held back until it is whole.
    """

    redactor: Redactor
    _pending: str = ""
    _context: str = ""
    _sent: str = ""

    def add(self, delta: str, is_last: bool = False) -> str:
        """The redacted text that can be passed on now."""
        self._pending += delta
        end = len(self._pending) if is_last else self._find_end()
        complete, self._pending = self._pending[:end], self._pending[end:]
        if not complete:
            return ""
        text = self._context + complete
        clean, sent = self.redactor.redact(text).text, self._sent
        new = clean.removeprefix(sent) if clean.startswith(sent) else clean[-len(complete) :]
        self._retain_context(text, clean)
        return new

    def _find_end(self) -> int:
        """The end of the words that are whole and outside of an open block."""
        pending = self._pending
        end = max((match.end() for match in _WORD_END.finditer(pending)), default=0)
        if len(pending) - end > _MAX_HELD:
            end = len(pending)
        start = 0
        while (begin := _BLOCK.search(pending, start)) and begin.start() < end:
            closed = _BLOCK_ENDS[begin[1] or ""].search(pending, begin.end())
            if closed is None or closed.end() > end:
                return begin.start()
            start = closed.end()
        return end

    def _retain_context(self, text: str, clean: str) -> None:
        """Keeps the line so far, and a little of the lines before it."""
        line = text.rfind("\n") + 1
        if len(text) <= 2 * _CONTEXT or (line == 0 and len(text) <= _MAX_LINE):
            self._context, self._sent = text, clean
            return
        kept = line if len(text) - line > _CONTEXT else text.rfind("\n", 0, -_CONTEXT) + 1
        self._context = text[kept:] if len(text) - kept <= _MAX_LINE else ""
        self._sent = self.redactor.redact(self._context).text


@dataclass
class TurnEmitter:
    """The events of one turn under one epoch, in order.

    Deltas that arrive while an event is being sent are sent as one. `step` counts requests of
    the model.
    """

    bus: MessageBus
    turn: ClaimedTurn | EndedTurn
    redactor: Redactor
    step: int = 0
    text: str = ""
    """What the model said in this step, redacted."""
    _waiting: deque[tuple[str, dict[str, Any], str]] = field(default_factory=deque)
    _is_filled: asyncio.Event = field(default_factory=asyncio.Event)
    _is_sent: asyncio.Event = field(default_factory=asyncio.Event)
    _count: int = 0
    _streams: dict[str, DeltaRedactor] = field(default_factory=dict)

    def begin_step(self, step: int) -> None:
        """Begins a request of the model."""
        self.step, self.text = step, ""
        self._streams = {kind: DeltaRedactor(self.redactor) for kind in DELTAS}

    def add_delta(self, kind: str, delta: str, is_last: bool = False) -> None:
        """Passes on a piece of text or thinking."""
        if text := self._streams[kind].add(make_storable(delta), is_last):
            self.text += text if kind == "text_delta" else ""
            for start in range(0, len(text), MAX_TEXT):
                self.emit(kind, {"text": text[start : start + MAX_TEXT]})

    def emit(self, kind: str, data: dict[str, Any], id: str = "") -> None:
        """Sends an event. One with an `id` of its own is sent once, whatever the epoch.

        A text that is too long is cut.
        """
        texts = {name: value for name, value in data.items() if isinstance(value, str)}
        cut = {name: text[:MAX_TEXT] for name, text in texts.items() if len(text) > MAX_TEXT}
        if cut:
            data = {**data, **cut, "cut": sorted(cut)}
        self._waiting.append((kind, data, id))
        self._is_filled.set()
        self._is_sent.clear()

    def emit_hand_over(self, agent: str, turn: UUID) -> None:
        """Sends the event of another agent's turn, once, whichever worker repeats it."""
        self.emit("handed_on", {"to": agent, "turn": str(turn)}, f"{turn}.handed_on")

    async def run(self) -> None:
        """Sends events until it is cancelled."""
        while True:
            await self._is_filled.wait()
            while self._waiting:
                kind, data, id = self._waiting.popleft()
                if kind in DELTAS:
                    data = {"text": self._merge(kind, data["text"])}
                await self._send(kind, data, id)
            self._is_filled.clear()
            self._is_sent.set()

    async def drain(self, seconds: float) -> bool:
        """Waits until all events are sent; returns whether they were."""
        if self._waiting or self._is_filled.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_sent.wait(), seconds)
        return not self._is_filled.is_set()

    def _merge(self, kind: str, text: str) -> str:
        """The text, joined with the waiting deltas of the same kind."""
        texts, size = [text], len(text)
        while self._waiting and self._waiting[0][0] == kind:
            size += len(self._waiting[0][1]["text"])
            if size > MAX_TEXT:
                break
            texts.append(self._waiting.popleft()[1]["text"])
        return "".join(texts)

    async def _send(self, kind: str, data: dict[str, Any], id: str) -> None:
        turn = self.turn
        self._count += 1
        event = EngineEvent(
            type=kind, turn=turn.id, agent=turn.agent, epoch=turn.epoch, step=self.step, data=data
        )
        body = event.model_dump_json().encode()
        payload = b'{"scope":' + json.dumps(turn.scope).encode() + b"," + body[1:]
        headers = {"Nats-Msg-Id": id or f"{turn.id}.{turn.epoch}.{self._count}"}
        delay = 0.2
        while True:
            try:
                await self.bus.send(engine_subject(turn.tenant_name, turn.group), payload, headers)
                return
            except Unavailable as error:
                # The turn continues meanwhile; its later texts are sent as one.
                log.info("event_delayed", type=kind, error=type(error).__name__)
                await asyncio.sleep(delay)
                delay = min(2 * delay, _MAX_RETRY_SECONDS)
            except ReverieError as error:
                log.warning("event_lost", type=kind, error=type(error).__name__)
                return


class GroupWatchers:
    """Streams events of groups to clients, with a limit for each key and for all."""

    def __init__(self, bus: MessageBus, visibility: EventVisibility) -> None:
        self._bus, self._visibility = bus, visibility
        self._open: Counter[str] = Counter()

    def check_places(self, principal: Principal) -> None:
        """Raises `Unavailable` if the limit of watchers is reached."""
        key = self._open[principal.key_id]
        if key >= MAX_WATCHERS // 4 or self._open.total() >= MAX_WATCHERS:
            raise Unavailable("a place to watch from", "too many clients watch already", 5.0)

    async def watch(
        self, principal: Principal, group: UUID, after: int
    ) -> AsyncGenerator[bytes, None]:
        """The events of a group after a position, as server-sent events whose id is the position.

        It ends when the key is no longer valid.
        """
        subject = engine_subject(principal.tenant_name, group)
        self._open[principal.key_id] += 1
        try:
            yield f": alive\nid: {after}\n\n".encode()
            watched = self._bus.watch(ENGINE_STREAM, subject, after)
            async with aclosing(iterate_with_ticks(watched, HEARTBEAT_SECONDS)) as ticks:
                checked = monotonic()
                async for message in ticks:
                    yield _encode(message) if message else b": alive\n\n"
                    if monotonic() - checked > KEY_CHECK_SECONDS:
                        checked = monotonic()
                        if has_token_expired(principal):
                            return
                        if not await self._visibility.is_key_valid(principal):
                            return
        finally:
            self._open -= Counter([principal.key_id])


def _encode(message: StoredMessage) -> bytes:
    """The event without its scope."""
    body = json.loads(message.data)
    del body["scope"]
    data = json.dumps(body, ensure_ascii=False)
    return f"id: {message.seq}\nevent: {body['type']}\ndata: {data}\n\n".encode()


async def cancel_and_wait(task: asyncio.Task[None]) -> None:
    """Cancels a task and waits for its end."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
