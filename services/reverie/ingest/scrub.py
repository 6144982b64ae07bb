"""Secrets taken out of texts that were stored before the vault knew them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import structlog

from reverie.domain.errors import ReverieError
from reverie.domain.known_secrets import Known
from reverie.domain.memory import content_hash
from reverie.domain.said import memory_words
from reverie.domain.words import index_text
from reverie.ingest.parts import Parts
from reverie.runtime.telemetry import span
from reverie.store.scrubbing import TABLES, Clean, Passage, Texts

log = structlog.get_logger("reverie.ingest")

PAGE = 200
LEASE = 60.0
_SAID = frozenset({"summary", "key", "git", "metadata", "tags"})


async def keep_scrubbing(parts: Parts) -> None:
    """Goes through one tenant's texts after another's, for ever. Cancel it to stop."""
    while True:
        try:
            passage = await parts.scrubbing.claim(LEASE)
            if passage:
                await scrub(parts, passage)
                continue
        except ReverieError as error:
            log.warning("scrubbing_put_off", reason=str(error))
        # The lease runs out, and the passage goes on from where it came to.
        except Exception as error:
            log.exception("scrubbing_failed", error=type(error).__name__)
        await asyncio.sleep(parts.settings.scrub_seconds)


async def scrub(parts: Parts, passage: Passage) -> int:
    """Goes the rest of the way; answers how many rows lost a secret. Safe to break off."""
    found = 0
    with span("scrub", tenant=passage.tenant_name):
        for part in TABLES[TABLES.index(passage.part) :]:
            if part != passage.part:
                passage = replace(passage, part=part, place=None)
            scrubbed = await _table(parts, passage)
            if scrubbed is None:
                return found
            found += scrubbed
        await parts.scrubbing.over(passage, parts.settings.scrub_grace)
    log.info("scrubbed", rows=found)
    return found


async def _table(parts: Parts, passage: Passage) -> int | None:
    """How many rows of the table lost a secret; None where another has the passage."""
    found = 0
    while page := await parts.scrubbing.page(passage, PAGE):
        known = await parts.vault.known(passage.tenant)
        clean = await asyncio.to_thread(_cleaned, known, page)
        if clean and not await parts.scrubbing.put(passage, clean):
            continue
        passage = replace(passage, place=page[-1].place)
        if not await parts.scrubbing.came(passage, len(page), len(clean), LEASE):
            return None
        found += len(clean)
    return found


def _cleaned(known: Known, page: Sequence[Texts]) -> list[Clean]:
    """The rows that hold a secret, without it."""
    return [row for one in page if (row := _clean(known, one))]


def _clean(known: Known, row: Texts) -> Clean | None:
    now, count = _scrubbed(known, row.texts)
    if not count:
        return None
    content = now.get("content") or ""
    named = {**(now.get("state") or {}), **now}
    spoken = "tags" in named
    words = (
        memory_words(named.get("key"), content, named["tags"]) if spoken else index_text(content)
    )
    return Clean(row.place, row.seen, now, words, content_hash(content))


def _scrubbed(known: Known, texts: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The columns without secrets; of a version's state, what of it is text."""
    now, total = {}, 0
    for name, value in texts.items():
        if name == "state":
            said = {part: inner for part, inner in value.items() if part in _SAID}
            inner, count = _scrubbed(known, said)
            now[name] = value | inner
        else:
            now[name], count = known.taken_out_of(value)
        total += count
    return now, total
