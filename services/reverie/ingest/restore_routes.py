"""The door out of the archive."""

from __future__ import annotations

from reverie.bus.relay import publish_now
from reverie.contracts.tending import Restored
from reverie.ingest.parts import Parts
from reverie.runtime.calls import Call, Reply
from reverie.runtime.routes import Route


def routes(parts: Parts) -> list[Route]:
    """The table of the archive."""

    async def restore(call: Call[None, None]) -> Reply:
        who = call.principal
        memory = await parts.memories.resolve(who, call.path["id"])
        version, event = await parts.tending.restore(who, memory)
        call.after(lambda: publish_now(parts.bus, parts.outbox, who.tenant, [event]))
        body = Restored(id=memory, version=version)
        return Reply(body=body, headers={"ETag": f'"{version}"'})

    return [
        Route("POST", "/v1/memories/{id}/restore", restore, answer=Restored,
              summary="Take a memory out of the archive"),
    ]  # fmt: skip
