"""The baseline for writes: an aiohttp POST that does one bare INSERT.

A server for `benchmarks.speed.end_to_end`: `python -m benchmarks.support.baseline_server
DATABASE_URL` prints its address.
"""

from __future__ import annotations

import asyncio
import sys
from uuid import uuid4

import asyncpg
from aiohttp import web

TABLE = "public.bench_floor"
POOL = 8


def application(pool: asyncpg.Pool[asyncpg.Record]) -> web.Application:
    """One route, without keys, checks, traces or metrics."""

    async def insert(request: web.Request) -> web.Response:
        body = await request.json()
        await pool.execute(f"insert into {TABLE} values ($1, $2)", uuid4(), body["content"])
        return web.json_response({"status": "created"})

    app = web.Application()
    app.router.add_post("/", insert)
    return app


async def serve(url: str) -> None:
    """Serves on a free port until it is ended."""
    async with asyncpg.create_pool(url, min_size=POOL, max_size=POOL) as pool:
        await pool.execute(
            f"create table if not exists {TABLE} (id uuid primary key, content text)"
        )
        runner = web.AppRunner(application(pool), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
