"""Compares the memory service with ADK's own in memory: what that finds by a word, ours finds."""

from __future__ import annotations

import asyncio
import os

from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai.types import Content, FunctionCall, Part

from reverie.adapters.google_adk import ReverieMemoryService
from reverie.client import AsyncReverie

SAID = [
    ("shop", "ada", "s1", ["Prices are kept in cents.", "Floats lost money in March."]),
    ("shop", "ada", "s2", ["The invoice printer is in room four.", "Prices are shown with tax."]),
    ("shop", "ada", "s8", [f"Shelf {n} holds paper of colour {n}." for n in range(40)]),
    ("shop", "bob", "s3", ["My parrot is called Rico.", "Prices bore me."]),
    ("Shop", "ada", "s4", ["The harbour opens at dawn."]),
    ("post", "ada", "s5", ["Parcels leave at noon; Prices differ."]),
    ("shop/ada", "bob", "s6", ["A lighthouse needs oil."]),
    ("shop", "ada/bob", "s7", ["The anchor is rusty."]),
]
"""App, user, session, and what was said there."""
WORDS = ["prices", "Cents", "floats", "printer", "room", "parrot", "harbour", "noon"]
WORDS += ["lighthouse", "anchor", "zebra", "lost money", "tax invoice"]
"""What means something; `in` and `the` are no words to search by."""
OWNERS = sorted({(app, user) for app, user, _, _ in SAID})


def session_of(app: str, user: str, id: str, texts: list[str]) -> Session:
    """A session whose second event and later ones are the model's; a call of a tool is last."""
    events = [
        Event(
            id=f"{id}-{n}",
            author="clerk" if n else "user",
            timestamp=1_700_000_000.0 + n,
            content=Content(role="model" if n else "user", parts=[Part(text=text)]),
        )
        for n, text in enumerate(texts)
    ]
    call = Part(function_call=FunctionCall(name="look", args={"at": "prices"}))
    events.append(Event(id=f"{id}-call", author="clerk", content=Content(parts=[call])))
    return Session(id=id, app_name=app, user_id=user, events=events)


async def found(
    service: BaseMemoryService, app: str, user: str, word: str
) -> dict[str, MemoryEntry]:
    """What a search gives, by its text."""
    answer = await service.search_memory(app_name=app, user_id=user, query=word)
    texts = [entry.content.parts[0].text for entry in answer.memories]
    assert len(set(texts)) == len(texts), texts
    return dict(zip(texts, answer.memories, strict=True))


async def compare(theirs: BaseMemoryService, ours: BaseMemoryService, case: str) -> None:
    """Every word by every owner: all that theirs finds, and nothing of others."""
    hits = 0
    for app, user in OWNERS:
        own = {text for a, u, _, texts in SAID if (a, u) == (app, user) for text in texts}
        for word in WORDS:
            expected = await found(theirs, app, user, word)
            got = await found(ours, app, user, word)
            assert expected.keys() <= got.keys() <= own, (app, user, word, got.keys())
            for text, entry in expected.items():
                assert got[text].author == entry.author
                assert got[text].content.role == entry.content.role
            hits += len(expected)
    print(f"{case}: {hits} found")


async def main() -> None:
    """Whole sessions, the same again, single events, deletion, explicit memories."""
    theirs = InMemoryMemoryService()
    url, key = os.environ["REVERIE_URL"], os.environ["REVERIE_API_KEY"]
    async with AsyncReverie(url, key) as client:
        ours = ReverieMemoryService(client)
        both = (theirs, ours)
        sessions = [session_of(*one) for one in SAID]
        for session in sessions:
            session.events, later = session.events[:1], session.events[1:]
            for service in both:
                await service.add_session_to_memory(session)
                await service.add_events_to_memory(
                    app_name=session.app_name,
                    user_id=session.user_id,
                    events=later,
                    session_id=session.id,
                )
            session.events += later
        await compare(theirs, ours, "added")

        for session in sessions:
            for service in both:
                await service.add_session_to_memory(session)
        await compare(theirs, ours, "added again")

        text = "Prices are kept in cents."
        for service in both:
            doomed = (await found(service, "shop", "ada", "cents"))[text].id
            await service.delete_memory(app_name="post", user_id="ada", memory_id=doomed)
            assert text in await found(service, "shop", "ada", "cents")
            await service.delete_memory(app_name="shop", user_id="ada", memory_id=doomed)
            await service.delete_memory(app_name="shop", user_id="ada", memory_id=doomed)
            await service.delete_memory(app_name="shop", user_id="ada")
            await service.add_session_to_memory(sessions[0])
            assert text not in await found(service, "shop", "ada", "cents")
        await compare(theirs, ours, "deleted")

        told = MemoryEntry(
            id="own-1",
            content=Content(role="user", parts=[Part(text="The shop closes at six.")]),
            author="ada",
            timestamp="2026-01-02T03:04:05",
            custom_metadata={"from": "a note"},
        )
        for _ in range(2):
            await ours.add_memory(app_name="shop", user_id="cleo", memories=[told])
        (entry,) = (await found(ours, "shop", "cleo", "closes")).values()
        assert entry == told.model_copy(update={"id": entry.id}), entry
        print("told: 1 found")


if __name__ == "__main__":
    asyncio.run(main())
