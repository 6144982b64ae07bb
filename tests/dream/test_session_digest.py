"""Sessions digested into memories: paging, open topics, citations, reinforcement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.conversation.topic_segmentation import TopicSegment
from reverie.domain.extraction.dream_log import DreamThresholds
from reverie.domain.extraction.rule_extractor import ExtractedMemory
from reverie.store.sessions.dream_queue import DreamLease
from reverie.store.sessions.sessions import SessionStore, TurnToAppend
from reverie_services.dream.dependencies import DigestDependencies
from reverie_services.dream.digest.run_dream import run_dream
from reverie_services.dream.extractor import Extraction
from tests.dream.test_dream_worker import HOUR, dream_parts
from tests.support.store_setup import Store, admin_rows, new

TOPICS = (
    "the login cookie expires and the session middleware rejects the request",
    "the revenue chart draws monthly bars with a colour legend per region",
    "the mail queue retries a letter that the post office refused for good",
)
CAUSES = (
    "`max_age` stands in minutes where seconds are meant, in src/login.py.",
    "Months are summed by their names, and those of two years are one: src/chart.py.",
    "A refusal and a silence are the same error to src/mail.py, so both are repeated.",
)


async def told(
    store: Store, parts: DigestDependencies, said: Sequence[tuple[str, str]], scope: str = "global"
) -> tuple[UUID, list[UUID]]:
    """A live session with these turns; answers its id and theirs."""
    session, _ = await SessionStore(store.db).start(store.me, new_id(), scope, {"agent": "ann"})
    turns = [TurnToAppend(new_id(), role, content, content) for role, content in said]
    await SessionStore(store.db).append(store.me, session, turns)
    return session, [turn.id for turn in turns]


async def dreamt(
    store: Store, parts: DigestDependencies, reason: str = "turns", scope: str = "global"
) -> str:
    """One dream over the scope, asked for by a reason."""
    await parts.dreams.request(store.me.tenant, "one", scope, reason, {})
    lease = await parts.dreams.claim("worker", HOUR)
    assert lease is not None
    return await run_dream(parts, lease)


def _talk(topic: str) -> list[tuple[str, str]]:
    return [
        ("user", f"Find out why {topic}"),
        ("assistant", f"Root cause: {CAUSES[TOPICS.index(topic)]}"),
    ]


def undigested(store: Store) -> list[UUID]:
    found = admin_rows(store.admin_url, "select id from turn where run is null order by ordinal")
    return [row[0] for row in found]


async def test_the_open_topic_of_a_live_session_waits_for_its_end_or_silence(store: Store) -> None:
    parts = dream_parts(store)
    session, turns = await told(store, parts, [said for topic in TOPICS for said in _talk(topic)])
    assert await dreamt(store, parts) == "done"
    assert undigested(store) == turns[2:]
    assert await dreamt(store, parts) == "done"
    assert undigested(store) == turns[2:]
    await SessionStore(store.db).append(
        store.me, session, [TurnToAppend(new_id(), "user", "yes", "yes")]
    )
    quiet = replace(
        parts, settings=replace(parts.settings, limits=DreamThresholds(idle_minutes=1e-9))
    )
    assert await dreamt(store, quiet) == "done"
    assert undigested(store) == []
    kept = str(admin_rows(store.admin_url, "select content from memory where status = 'active'"))
    assert all(cause[:20] in kept for cause in CAUSES)


@pytest.mark.parametrize("batch", [3, 200])
async def test_a_long_session_is_digested_page_by_page_and_every_turn_once(
    store: Store, batch: int
) -> None:
    parts = dream_parts(store)
    paged = replace(parts, settings=replace(parts.settings, turn_page_size=batch, opening_turns=4))
    session, turns = await told(store, parts, [said for topic in TOPICS for said in _talk(topic)])
    await SessionStore(store.db).end(store.me, session, None)
    assert await dreamt(store, paged) == "done"
    assert undigested(store) == []
    [run] = await parts.dream_runs.list_runs(store.me, None, None, 1)
    assert run.turns == len(turns)
    kept = admin_rows(store.admin_url, "select content from memory where status = 'active'")
    assert all(cause[:20] in str(kept) for cause in CAUSES)


class _Inventive:
    """Cites what it was not given: nothing, or turns of elsewhere."""

    async def extract(self, topic: TopicSegment, lease: DreamLease) -> Extraction:
        first = topic.turns[0]
        cites = {"nothing": (), "elsewhere": (UUID(int=1),), "both": (first.id, UUID(int=2))}
        made = [
            ExtractedMemory(
                (f"We always cite {name} in what we write."),
                Kind.CONVENTION,
                (),
                0.9,
                (),
                to,
                first.at,
            )
            for name, to in cites.items()
        ]
        return Extraction(made, prompt="inventive/1")


async def test_an_extraction_that_cites_no_turn_of_its_segment_is_refused(store: Store) -> None:
    parts = replace(dream_parts(store), extractor=_Inventive())
    _, turns = await told(store, parts, _talk(TOPICS[0]))
    assert await dreamt(store, parts, "asked") == "done"
    kept = admin_rows(
        store.admin_url,
        "select m.content, t.turn from memory m join memory_turn t on t.memory = m.id"
        " where m.kind = 'convention'",
    )
    assert kept == [("We always cite both in what we write.", turns[0])]


async def _ended(store: Store, parts: DigestDependencies, said: Sequence[tuple[str, str]]) -> UUID:
    session, _ = await told(store, parts, said)
    await SessionStore(store.db).end(store.me, session, None)
    assert await dreamt(store, parts, "session_end") == "done"
    return session


def _memories(store: Store) -> dict[str, tuple[str, float, object]]:
    found = admin_rows(
        store.admin_url,
        "select content, status, confidence, superseded_by from memory"
        " where kind not in ('session', 'file', 'entity')",
    )
    return {content: (status, confidence, by) for content, status, confidence, by in found}


def _edges(store: Store, kind: str) -> list[tuple[str, str]]:
    found = admin_rows(
        store.admin_url,
        "select a.content, b.content from edge e join memory a on a.id = e.src"
        " join memory b on b.id = e.dst where e.kind = %s and e.known_to is null",
        kind,
    )
    return [(a, b) for a, b in found]


async def test_a_known_memory_is_reinforced_refined_or_contradicted(store: Store) -> None:
    parts = dream_parts(store)
    rule = "Uploads should always stay below 20 MB."
    await _ended(store, parts, [("user", rule), ("assistant", "Understood.")])
    once = _memories(store)[rule]
    again = await _ended(store, parts, [("user", f"Ok. {rule}"), ("assistant", "Noted.")])
    twice = _memories(store)
    assert list(twice) == [rule]
    assert twice[rule][1] > once[1]

    fuller = "Uploads should always stay below 20 MB, for the proxy cuts them off."
    await _ended(store, parts, [("user", fuller), ("assistant", "Noted.")])
    refined = _memories(store)
    assert refined[rule][0] == "superseded"
    assert refined[fuller][0] == "active"
    assert _edges(store, "supersedes") == [(fuller, rule)]
    [reason] = admin_rows(
        store.admin_url, "select meta ->> 'reason' from edge where kind = 'supersedes'"
    )
    assert "says the same and more" in reason[0]

    other = "Uploads should always stay below 50 MB, for the proxy cuts them off."
    await _ended(store, parts, [("user", other), ("assistant", "Noted.")])
    doubted = _memories(store)
    assert doubted[fuller][1] < refined[fuller][1]
    assert _edges(store, "contradicts") == [(other, fuller)]
    decided = admin_rows(store.admin_url, "select outcome from dream_decision order by run, no")
    assert {"created", "duplicate", "superseded", "contradicting"} <= {row[0] for row in decided}
    assert again


async def test_a_dream_compares_a_value_with_the_latest_one(store: Store) -> None:
    parts = dream_parts(store)
    said = [f"Uploads should always stay below {many} MB." for many in (20, 50, 80, 30)]
    for one in said:
        await _ended(store, parts, [("user", one), ("assistant", "Noted.")])
    assert sorted(_edges(store, "contradicts")) == sorted(zip(said[1:], said, strict=False))


async def test_a_session_has_one_memory_that_grows(store: Store) -> None:
    parts = dream_parts(store)
    session, _ = await told(store, parts, [*_talk(TOPICS[0]), *_talk(TOPICS[1])])
    assert await dreamt(store, parts, "asked") == "done"
    node = "select id, version, content, status from memory where kind = 'session'"
    [(first, version, content, _)] = admin_rows(store.admin_url, node)
    late = [TurnToAppend(new_id(), role, said, said) for role, said in _talk(TOPICS[2])]
    await SessionStore(store.db).append(store.me, session, late)
    assert await dreamt(store, parts, "asked") == "done"
    [(again, later, grown, status)] = admin_rows(store.admin_url, node)
    assert (again, later, status) == (first, version + 1, "active")
    assert grown != content
    assert len(_edges(store, "learned_in")) == len(_memories(store))


async def test_a_memory_is_linked_to_each_session_that_taught_it(store: Store) -> None:
    parts = dream_parts(store)
    rule = "Uploads should always stay below 20 MB."
    for _ in range(2):
        said = [*_talk(TOPICS[0]), *_talk(TOPICS[1]), ("user", rule), ("assistant", "Noted.")]
        await _ended(store, parts, said)
    assert [one for one, _ in _edges(store, "learned_in")].count(rule) == 2


async def test_a_digest_writes_only_to_the_scope_whose_turns_it_cites(store: Store) -> None:
    parts = dream_parts(store)
    own, turns = await told(store, parts, _talk(TOPICS[0]))
    _, foreign = await told(store, parts, _talk(TOPICS[1]), "agent/bob")
    await parts.dreams.request(store.me.tenant, "one", "global", "asked", {})
    lease = await parts.dreams.claim("worker", HOUR)
    assert lease is not None
    run = new_id()
    assert await parts.dreams.start(lease, run, "worker")
    attempts = [
        new("another scope", scope="agent/bob", turns=(turns[0],)),
        new("turns of another scope", turns=(foreign[0],)),
        new("turns of both", turns=(turns[0], foreign[0])),
        new("no turns"),
        new("a key of another scope", scope="project/x", key="rule", turns=(turns[0],)),
    ]
    made = await parts.dreams.commit(lease, run, own, attempts, [], {})
    assert made is not None
    assert [one.get("problem") for one in made] == ["beyond"] * len(attempts)
    assert admin_rows(store.admin_url, "select content from memory") == []
    good = new("turns of its own", turns=(turns[0],))
    made = await parts.dreams.commit(lease, run, own, [good], [*turns, *foreign], {})
    assert made is not None
    assert [one["outcome"] for one in made] == ["created"]
    assert undigested(store) == foreign
