"""`AsyncReverie`: typed calls to a gateway."""

from __future__ import annotations

from reverie.client.administration import Administration
from reverie.client.events import Streams
from reverie.client.graph import Graph
from reverie.client.session import Sessions


class AsyncReverie(Sessions, Graph, Administration, Streams):
    """Reverie for code that awaits.

    `url` is the gateway's, `timeout` in seconds for one try, `tries` how often a call is made at
    most where that is safe: reads, and changes, which carry an `Idempotency-Key` so that their
    effects happen once. Every call raises `Refused` where the gateway refuses it (`reason` is the
    stable code) and `Unavailable` where it does not answer. Lists are read by the page as they
    are walked.

        async with AsyncReverie("http://127.0.0.1:3456", key) as reverie:
            await reverie.remember("Deploys go through staging first.", kind="convention")
            found = await reverie.recall("how do we deploy?")
            async with reverie.session("my-agent", project="shop") as session:
                await session.turn("user", "Deploy it, please.")
    """
