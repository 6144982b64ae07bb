"""Staleness marks along a real history, and their cost for a large tenant.

    python -m benchmarks.quality.staleness_on_history [--memories 100000] [--files 20000]

The first part reads the history and the transcripts that lie beside the repository; without them it
is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.support.common import CallTimes, show
from reverie.testing.models import model_home
from reverie.testing.servers import create_run, end_run, fresh_database, join_run, own_nats
from tests.support.real_history import HISTORY, read_history, steps_of
from tests.support.real_transcripts import TRANSCRIPTS
from tests.support.stack import Stack, eventually, running_stack

SHA = "{:040x}"
SMALL_EVENTS = 100
_FILL = (
    """insert into memory (tenant, id, scope, kind, tier, enriched_version, content, hash, words,
                           terms, confidence, source)
       select {tenant}, uuidv7(), 'project/p', 'decision', 'warm', 1, 'memory ' || n || ' of it',
              sha256(n::text::bytea), '', 0, 0.8, 'agent' from generate_series(1, {memories}) n""",
    """insert into memory (tenant, id, scope, kind, tier, enriched_version, key, content, hash,
                           words, terms, confidence, source)
       select {tenant}, uuidv7(), 'project/p', 'file', 'cold', 1, 'file:' || p, p,
              sha256(p::bytea), '', 0, 1, 'anchor'
       from (select 'src/d' || n % 200 || '/file' || n || '.py' as p
             from generate_series(1, {files}) n) f""",
    """insert into anchor (tenant, node, project, path, name)
       select {tenant}, id, 'p', content, regexp_replace(content, '^.*/', '') from memory
       where tenant = {tenant} and kind = 'file'""",
    """with f as (select id, row_number() over (order by id) - 1 as n from memory
                  where tenant = {tenant} and kind = 'file'),
            m as (select id, row_number() over (order by id) - 1 as n from memory
                  where tenant = {tenant} and kind = 'decision')
       insert into edge (tenant, id, src, kind, dst, meta)
       select {tenant}, gen_random_uuid(), m.id, 'touches', f.id, '{{"lines": [[10, 20]]}}'
       from m join f on f.n = m.n % {files}""",
    """with m as (select id, row_number() over (order by id) as n from memory
                  where tenant = {tenant} and kind = 'decision')
       insert into edge (tenant, id, src, kind, dst)
       select {tenant}, gen_random_uuid(), a.id, 'depends_on', b.id
       from m a join m b on b.n = a.n - 7 where a.n % 3 = 0""",
    "analyze memory; analyze edge; analyze anchor",
)


def flagged() -> None:
    """Prints the share of memories that is flagged after each month, by file and by line."""
    from tests.staleness.anchored_session_memories import by_month, dreamt

    memories = dreamt()
    figures = by_month(memories, [step for change in read_history() for step in steps_of(change)])
    rows = [
        (
            f.month,
            f"{f.by_file / f.memories:.1%}",
            f"{f.by_line / f.memories:.1%}",
            f"{f.anchors_by_file / f.anchors:.1%}",
            f"{f.anchors_by_line / f.anchors:.1%}",
            f.missed,
        )
        for f in figures
    ]
    columns = ("after", "by file", "by line", "anchors by file", "by line", "deleted, not told")
    of = f"{figures[0].memories} dreamt memories with {figures[0].anchors} anchors"
    show(f"share of {of} that is flagged", columns, rows)


async def cost(memories: int, files: int) -> None:
    """Prints how long changes take from the request to the marks that everyone sees."""
    run = create_run()
    member = join_run(run)
    try:
        with fresh_database(run) as database, own_nats(run) as nats:
            async with running_stack(database, nats.url, Path(model_home())) as stack:
                _fill(database.admin_url, memories, files)
                small = [await _seen(stack, n, 1, files) for n in range(SMALL_EVENTS)]
                begun = time.perf_counter()
                for n in range(SMALL_EVENTS):
                    await _post(stack, 5000 + n, 1, files, line=14)
                await eventually(lambda: _applied(stack), seconds=600)
                row = time.perf_counter() - begun
                before = _marks(stack)
                large = await _seen(stack, 9000, 2000, files, line=16)
                made = _marks(stack) - before
    finally:
        os.close(member)
        end_run(run)
    one = CallTimes(small, sum(small))
    show(
        f"{memories} memories, {files} anchored files",
        ("", "figure"),
        [
            ("one file, at rest: p50 to the visible warning, ms", f"{one.at(0.5):.0f}"),
            ("one file, at rest: p99, ms", f"{one.at(0.99):.0f}"),
            ("one file each, one after the other: events a second", f"{SMALL_EVENTS / row:.1f}"),
            ("2,000 files in one event: seconds", f"{large:.1f}"),
            ("its new marks", made),
            ("its marks a second", f"{made / large:.0f}"),
        ],
    )


def _fill(admin_url: str, memories: int, files: int) -> None:
    with psycopg.connect(admin_url, options="-csearch_path=reverie,public") as connection:
        row = connection.execute("select id from tenant order by id desc limit 1").fetchone()
        assert row is not None
        # Numbered rows have no statistics: loops over loops would be chosen for joining them.
        connection.execute("set enable_nestloop = off")
        for statement in _FILL:
            sql = statement.format(tenant=row[0], memories=memories, files=files)
            connection.execute(sql.encode())


async def _post(stack: Stack, n: int, many: int, files: int, line: int = 12) -> None:
    sha = SHA.format(n + 1)
    numbers = [(n * 37 + k * 7) % files + 1 for k in range(many)]
    change: dict[str, Any] = {
        "project": "p",
        "branch": "main",
        "after": sha,
        "commits": [{"sha": sha, "subject": "s", "committed_at": f"2099-01-01T00:00:{n % 60:02}Z"}],
        "files": [
            {
                "path": f"src/d{f % 200}/file{f}.py",
                "status": "modified",
                "hunks": [[line, 1, line, 1]],
            }
            for f in numbers
        ],
    }
    await stack.post("/v1/git/changes", change)


async def _seen(stack: Stack, n: int, many: int, files: int, line: int = 12) -> float:
    """Seconds from the request until the change is applied and a mark of it is read back."""
    begun = time.perf_counter()
    await _post(stack, n, many, files, line)
    await eventually(lambda: _applied(stack), seconds=600, pause=0.005 if many == 1 else 0.1)
    return time.perf_counter() - begun


async def _applied(stack: Stack) -> bool:
    return bool(_number(stack, "select count(*) from git_event where processed is null") == 0)


def _marks(stack: Stack) -> int:
    return _number(stack, "select count(*) from stale_mark where cleared is null")


def _number(stack: Stack, statement: str) -> int:
    row = _connection(stack.admin_url).execute(statement.encode()).fetchone()
    assert row is not None
    return int(row[0])


@cache
def _connection(admin_url: str) -> psycopg.Connection[Any]:
    """One for all looks: to connect takes longer than to look."""
    options = "-csearch_path=reverie,public"
    return psycopg.connect(admin_url, options=options, autocommit=True)


def main() -> None:
    """Both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=20_000)
    given = parser.parse_args()
    if HISTORY.exists() and TRANSCRIPTS.exists():
        flagged()
    asyncio.run(cost(given.memories, given.files))


if __name__ == "__main__":
    main()
