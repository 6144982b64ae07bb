"""Doors back to trust: out of the archive, out of doubt."""

from __future__ import annotations

from reverie.bus.relay import publish_now
from reverie.contracts.edits import Confirmed
from reverie.contracts.tending import Restored
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call, Reply
from reverie.runtime.routes import Route
from reverie.runtime.telemetry import inject_headers


def routes(parts: Parts) -> list[Route]:
    """The table of both."""

    async def restore(call: Call[None, None]) -> Reply:
        who = call.principal
        memory = await parts.memories.resolve(who, call.path["id"])
        version, event = await parts.tending.restore(who, memory)
        call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, [event]))
        body = Restored(id=memory, version=version)
        return Reply(body=body, headers={"ETag": f'"{version}"'})

    async def confirm(call: Call[None, None]) -> Confirmed:
        who = call.principal
        memory = await parts.memories.resolve(who, call.path["id"])
        version, cleared, told = await parts.doubts.confirm(who, memory, inject_headers())
        call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, told))
        return Confirmed(id=memory, version=version, cleared=cleared)

    return [
        Route("POST", "/v1/memories/{id}/confirm", confirm, answer=Confirmed,
              summary="Say that a memory holds as the code stands"),
        Route("POST", "/v1/memories/{id}/restore", restore, answer=Restored,
              summary="Take a memory out of the archive"),
    ]  # fmt: skip
