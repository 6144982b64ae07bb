"""A message of NATS in the hands of a worker."""

from __future__ import annotations

import json
from typing import Protocol

from nats.aio.msg import Msg

from reverie.bus.port import Message
from reverie.bus.streams import ConsumerSpec


class _Answers(Protocol):
    async def answer(self, reply: str, verdict: bytes, patience: float) -> None: ...

    async def tell(self, reply: str, verdict: bytes) -> None: ...


class NatsDelivery:
    """Settles through the bus, not the connection it came by: an acknowledgement of work that
    outlived a reconnect still counts."""

    def __init__(self, bus: _Answers, spec: ConsumerSpec, raw: Msg):
        self._bus = bus
        self._patience = spec.ack_wait
        self._reply = raw.reply
        self.seq = raw.metadata.sequence.stream
        self.message = Message(
            raw.subject, raw.data, dict(raw.headers or {}), raw.metadata.num_delivered
        )

    async def ack(self) -> None:
        await self._bus.answer(self._reply, Msg.Ack.Ack, self._patience)

    async def nak(self, delay: float) -> None:
        detail = b" " + json.dumps({"delay": int(delay * 1e9)}).encode() if delay > 0 else b""
        await self._bus.answer(self._reply, Msg.Ack.Nak + detail, self._patience)

    async def term(self) -> None:
        await self._bus.answer(self._reply, Msg.Ack.Term, self._patience)

    async def progress(self) -> None:
        await self._bus.tell(self._reply, Msg.Ack.Progress)
