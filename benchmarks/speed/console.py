"""Measures how long each page of the console takes, and how much it weighs packed.

Run from the root of the project: `python -m benchmarks.speed.console [--size N] [--times N]`.
The tenant holds N memories. One browser, one page after another. The aims: every page under
100 ms at the median, and the first page with all that it loads under 200 kB packed.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from dataclasses import dataclass
from urllib.parse import quote

import aiohttp
import psycopg

from benchmarks.support.common import CallTimes, open_quiet_run, parser, show
from reverie.domain.access.principals import KeyRole
from reverie.store.platform.api_keys import NewApiKey, create_key
from reverie.testing.models import model_home
from reverie.testing.servers import TestRun, fresh_database, own_nats
from tests.console.sample_tenant import dream, fill
from tests.store.db import large_tenant
from tests.support.dead_letters import bury
from tests.support.stack import Stack, eventually, running_stack
from tests.support.store_setup import PATH, add_tenants, admin_rows

TENANT = "big"
QUIET = (
    # Of what waits, enough to fill a page: nothing is to run while pages are measured.
    "delete from outbox where tenant = %(tenant)s",
    "update memory set enriched_version = version where tenant = %(tenant)s",
    "update session set pending = 0 where tenant = %(tenant)s",
)
_LOADED = re.compile(r'(?:src|href)="(/console/static/[^"]+)"')


@dataclass(frozen=True)
class PageWeight:
    """A page as it came: the time of each load in seconds, and its bytes packed."""

    path: str
    seconds: list[float]
    packed: int


async def load_page(http: aiohttp.ClientSession, path: str) -> tuple[float, int, bytes]:
    """The seconds that a page took, its size as it was sent, and its text if it was not packed."""
    begun = time.perf_counter()
    async with http.get(f"/console{path}") as answer:
        assert answer.status == 200, (path, answer.status)
        body = await answer.read()
    return time.perf_counter() - begun, len(body), body


async def weigh_first_page(stack: Stack, http: aiohttp.ClientSession) -> int:
    """The bytes of the first page and of all that it loads, packed."""
    plain = {"Accept-Encoding": "identity"}
    async with http.get("/console", headers=plain) as answer:
        files = set(_LOADED.findall(await answer.text()))
    paths = ["", *(file.removeprefix("/console") for file in files), "/counts"]
    return sum([(await load_page(http, path))[1] for path in paths])


async def measure(run: TestRun, size: int, times: int) -> None:
    """Fills a tenant, and prints the time and the size of each page."""
    with fresh_database(run) as database, own_nats(run) as nats:
        [tenant] = add_tenants(database.admin_url, TENANT)
        large_tenant.load(database.admin_url, tenant, size, min(size, 2_000))
        with psycopg.connect(database.admin_url, options=PATH, autocommit=True) as connection:
            for statement in QUIET:
                connection.execute(statement.encode(), {"tenant": tenant})
            connection.execute("vacuum analyze")
        async with running_stack(database, nats.url, model_home()) as started:
            key = create_key(database.admin_url, NewApiKey("bench", KeyRole.ADMIN, tenant=TENANT))
            stack = Stack(**{**vars(started), "key": key, "tenant": TENANT})
            sample = await fill(stack, "plain")
            paths = [*sample.pages, f"/dreams/{await dream(stack, sample)}", "/memories?kind=bug"]
            for _ in range(50):
                await bury(stack)
            paths.append(f"/memories?scope={quote('project/p1', safe='')}")

            async def is_idle() -> bool:
                waiting = "select count(*) from outbox where tenant = %s"
                return admin_rows(database.admin_url, waiting, tenant) == [(0,)]

            await eventually(is_idle)
            jar = aiohttp.CookieJar(unsafe=True)
            async with aiohttp.ClientSession(
                stack.url,
                cookie_jar=jar,
                auto_decompress=False,
                headers={"Accept-Encoding": "gzip"},
            ) as http:
                await http.post("/console/sign-in", data={"key": key}, allow_redirects=False)
                pages = []
                for path in dict.fromkeys(paths):
                    await load_page(http, path)
                    loads = [await load_page(http, path) for _ in range(times)]
                    pages.append(PageWeight(path, [each[0] for each in loads], loads[-1][1]))
                first = await weigh_first_page(stack, http)
    _show(pages, size)
    print(f"The first page with all that it loads: {first / 1000:.1f} kB packed")


def _show(pages: list[PageWeight], size: int) -> None:
    rows = []
    for page in sorted(pages, key=lambda page: -sorted(page.seconds)[len(page.seconds) // 2]):
        taken = CallTimes(page.seconds, sum(page.seconds))
        name = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", page.path)
        rows.append([name, f"{taken.at(0.5):.1f}", f"{taken.at(0.95):.1f}", f"{page.packed:,}"])
    show(f"pages at {size:,} memories", ["page", "p50 ms", "p95 ms", "bytes packed"], rows)


def main(args: argparse.Namespace) -> None:
    """Runs the measurement on servers of its own."""
    with open_quiet_run() as run:
        asyncio.run(measure(run, args.size, args.times))


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--size", type=int, default=100_000)
    options.add_argument("--times", type=int, default=9)
    main(options.parse_args())
