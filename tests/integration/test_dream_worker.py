"""A dream worker by itself, on real Postgres."""

from __future__ import annotations

from reverie.domain.ids import new_id
from reverie.domain.known_secrets import Known, KnownSecret
from reverie.dream.digest import dream
from reverie.dream.parts import Parts
from reverie.dream.settings import DreamSettings
from reverie.inference.tokens import EstimatingTokenCounter
from reverie.store.dream_runs import DreamRuns
from reverie.store.dreams import Dreams
from reverie.store.duplicates import Duplicates
from reverie.store.outbox import OutboxTable
from reverie.store.ranks import Ranks
from reverie.store.reviews import Reviews
from reverie.store.sessions import NewTurn, Sessions
from reverie.store.short_ids import ShortIds
from reverie.store.summaries import Summaries
from reverie.store.tending import Tending
from reverie.testing.bus import MemoryBus
from reverie.testing.servers import Database
from tests.integration.store_parts import Store, admin_rows, open_store

HOUR = 3600.0


async def _known(_: int) -> Known:
    """A secret that came into the vault after the turns did."""
    return Known([KnownSecret("global", "till", "tulip-seven")])


def dream_parts(store: Store) -> Parts:
    return Parts(
        settings=DreamSettings("worker", lease_seconds=HOUR, max_attempts=3),
        bus=MemoryBus(),
        counter=EstimatingTokenCounter(),
        dreams=Dreams(store.db),
        runs=DreamRuns(store.db),
        sessions=Sessions(store.db),
        ids=ShortIds(store.db),
        summaries=Summaries(store.db),
        tending=Tending(store.db),
        duplicates=Duplicates(store.db),
        reviews=Reviews(store.db),
        ranks=Ranks(store.db),
        outbox=OutboxTable(store.db),
        known_of=_known,
    )


async def _waiting(
    store: Store, parts: Parts, said: str = "We decided to keep money in cents."
) -> None:
    """A session with a turn to digest, and a request for it."""
    session, scope = await parts.sessions.start(store.me, new_id(), "global", {"agent": "ann"})
    turn = NewTurn(new_id(), "user", said, "money cents")
    await parts.sessions.append(store.me, session, [turn])
    await parts.dreams.request(store.me.tenant, "one", scope, "asked", {})


async def test_a_digest_gives_on_no_secret_that_the_vault_has_learnt_since(
    database: Database,
) -> None:
    async with open_store(database) as store:
        parts = dream_parts(store)
        said = "We decided to open the till with tulip-seven."
        await _waiting(store, parts, said)
        lease = await parts.dreams.claim("worker", HOUR)
        assert lease is not None
        assert await dream(parts, lease) == "done"
        made = admin_rows(store.admin_url, "select content from memory where source = 'dream'")
        assert made
        kept = admin_rows(store.admin_url, "select content from summary") + made
        assert "tulip-seven" not in str(kept)
        assert "[REDACTED_VAULT]" in str(made)


async def test_a_scope_that_kills_its_workers_is_parked_and_says_so(database: Database) -> None:
    async with open_store(database) as store:
        parts = dream_parts(store)
        await _waiting(store, parts)
        for _ in range(3):
            assert await parts.dreams.claim("doomed", HOUR) is not None
            admin_rows(store.admin_url, "update dream_job set lease_until = now() - interval '1 s'")
        last = await parts.dreams.claim("careful", HOUR)
        assert last is not None
        assert await dream(parts, last) == "parked"
        [run] = await parts.dreams.runs(store.me, None, "global", 10)
        assert (run.status, run.error, run.turns) == ("failed", "WorkersLost", 0)
        assert await parts.dreams.claim("next", HOUR) is None


async def test_a_worker_whose_lease_was_taken_over_leaves_nothing_behind(
    database: Database,
) -> None:
    async with open_store(database) as store:
        parts = dream_parts(store)
        await _waiting(store, parts)
        slow = await parts.dreams.claim("slow", HOUR)
        assert slow is not None
        admin_rows(store.admin_url, "update dream_job set lease_until = now() - interval '1 s'")
        fresh = await parts.dreams.claim("fresh", HOUR)
        assert fresh is not None
        assert await dream(parts, slow) == "lost"
        assert await parts.dreams.runs(store.me, None, "global", 10) == []
        assert await dream(parts, fresh) == "done"
        [run] = await parts.dreams.runs(store.me, None, "global", 10)
        assert (run.status, run.turns) == ("done", 1)
