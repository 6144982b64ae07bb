"""One running system with the data that all interface test cases need."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
from mcp import Client

from reverie.client import AsyncReverie
from reverie.contracts.reverie_pb2_grpc import ReverieStub
from reverie.domain.access.principals import KeyRole
from reverie.embedded.ports import find_free_port
from reverie.testing.chat_server import chat_server
from reverie.testing.models import model_home
from reverie.testing.servers import TestRun, fresh_database, own_nats
from tests.interfaces.case import Fields
from tests.interfaces.running_engine import answer_shortly, engine_settings, run_engine
from tests.interfaces.typescript_client import (
    TypeScriptClient,
    build_client,
    builds_client,
    run_client,
)
from tests.support.dead_letters import bury
from tests.support.git_clone import Clone, new_clone
from tests.support.mcp_clients import over_http
from tests.support.stack import Stack, eventually, running_stack
from tests.support.tables import rows, tell_of

VAULT_KEY = base64.b64encode(b"k" * 32).decode()
_FIRST, _THEN = "bdfgklmnprstvz", "aeiou"
PICTURE = "R0lGODlhAQABAAAAACw="
PROJECT, SCOPE = "quay", "project/quay"


@dataclass
class World:
    """The system, a client of each door, and ways to make what a case needs."""

    stack: Stack
    port: int
    nats_url: str
    folder: Path
    stub: Any
    mcp: Client
    client: AsyncReverie
    clone: Clone
    typescript: TypeScriptClient | None
    _numbers: Any = field(default_factory=count)

    def number(self) -> int:
        """One that was not given before."""
        return int(next(self._numbers))

    def words(self) -> str:
        """Words that nobody said before: memories of them are no near duplicates."""
        syllables = [f"{_FIRST[n % 14]}{_THEN[n // 14 % 5]}" for n in uuid4().bytes]
        return " ".join("".join(syllables[at : at + 3]) for at in range(0, 15, 3))

    async def post(self, path: str, body: Any = None, **more: Any) -> Any:
        """The answer of a POST that must succeed."""
        return await self.stack.post(path, body or {}, **more)

    async def none(self, **fields: Any) -> Fields:
        """The fields alone."""
        return fields

    async def memory(self, content: str = "Lamp {} is lit at dusk.", **more: Any) -> Fields:
        """A memory's id."""
        text = content.format(self.words())
        body = {"content": text, "kind": "lesson", "scope": SCOPE, **more}
        made = await self.post("/v1/remember", body)
        return {"id": made["id"], "_content": text}

    async def edited(self) -> Fields:
        """A memory that was changed once."""
        fields = await self.memory()
        await self.stack.call(
            "PATCH", f"/v1/memories/{fields['id']}", {"content": f"Changed to {self.words()}"}
        )
        return fields

    async def archived(self) -> Fields:
        """A memory in the archive."""
        fields = await self.memory()
        self.sql("update memory set status = 'archived' where id = %s returning 1", fields["id"])
        return fields

    async def two(self) -> Fields:
        """Two memories, and how to link them."""
        one, other = await self.memory(), await self.memory()
        return {"from": one["id"], "to": other["id"], "type": "relates_to"}

    async def edge(self) -> Fields:
        """An edge's id."""
        return {"id": (await self.post("/v1/links", await self.two()))["id"]}

    async def dead_letter(self) -> Fields:
        """The number of a message that no worker could handle."""
        return {"seq": str(await bury(self.stack))}

    async def skill(self) -> Fields:
        """A skill, and what fills it."""
        body = {"content": f"Moor {self.words()} at {{place}}", "kind": "skill", "scope": SCOPE}
        made = await self.post("/v1/remember", {**body, "steps": ["Steer to {place}", "Tie up"]})
        return {"id": made["id"], "values": {"place": "pier"}}

    async def task(self, **more: Any) -> Fields:
        """A task's id."""
        return await self.memory("Paint pier {}.", kind="task", **more)

    async def claimed(self) -> Fields:
        """A task that ann has."""
        fields = await self.task()
        await self.post(f"/v1/tasks/{fields['id']}/claim", {"agent": "ann"})
        return {**fields, "agent": "ann"}

    async def session(self, as_: str = "id", **more: Any) -> Fields:
        """A session of ann in the project, with one turn."""
        start = {"agent": "ann", "project": PROJECT, "external_id": str(uuid4())}
        session = (await self.post("/v1/sessions/start", start))["session"]
        turn = {"role": "user", "content": f"We decided to moor at pier {self.words()}."}
        await self.post("/v1/turns", {"session": session, "turns": [turn]})
        return {as_: session, **more}

    async def dreamt(self) -> Fields:
        """A dream's id, and its scope."""
        session = (await self.session())["id"]
        scope = (await self.post("/v1/dream", {"session": session}))["scope"]

        async def run() -> Any:
            return (await self.stack.get(f"/v1/dreams?scope={scope}"))["items"]

        return {"id": (await eventually(run))[0]["id"], "_scope": scope}

    async def summarised(self) -> Fields:
        """A scope that was dreamt over."""
        scope = (await self.dreamt())["_scope"]

        async def told() -> Any:
            return (await self.stack.get(f"/v1/dream/summaries?scope={scope}"))["items"]

        await eventually(told)
        return {"scope": scope}

    async def narrated(self) -> Fields:
        """A scope whose summary has a sentence of a language model."""
        scope = f"project/told{self.number()}"
        fields = await self.memory(scope=scope)
        tell_of(self.stack.admin_url, fields["id"], "Lamps are lit at dusk.")
        return {
            "scope": scope,
            "_told": [{"text": "Lamps are lit at dusk.", "memories": [fields["id"]]}],
        }

    async def picture(self, **more: Any) -> Fields:
        """A memory that carries a picture, and the picture's hash."""
        memory = (await self.memory())["id"]
        body = {"data": PICTURE, "name": "mole.gif", "text": f"Mole {self.words()}"}
        made = await self.post(f"/v1/memories/{memory}/pictures", body)
        return {"id": memory, "hash": made["hash"], **more}

    async def link_to_end(self) -> Fields:
        """Two projects that are linked."""
        fields = {"name": f"pair{self.number()}", "linked": PROJECT}
        await self.stack.call("PUT", f"/v1/projects/{fields['name']}/links/{PROJECT}", {})
        return fields

    async def linked(self) -> Fields:
        """A project with one link."""
        fields = await self.link_to_end()
        return {"name": fields["name"], "_linked": PROJECT}

    async def review(self) -> Fields:
        """A review that waits."""
        memory, review = await self.memory(), str(uuid4())
        self.sql(
            "insert into review (tenant, id, memory, version, verdict, reason, author, seen)"
            " select tenant, %s, id, version, 'holds', 'it does', 'a test', now() from memory"
            " where id = %s returning 1",
            review,
            memory["id"],
        )
        return {"id": review, "_memory": memory["id"]}

    async def trace(self) -> Fields:
        """A recall's trace."""
        trace = (await self.post("/v1/recall", {"query": f"lamp {self.number()}"}))["trace_id"]

        async def kept() -> Any:
            return (await self.stack.call("GET", f"/v1/traces/{trace}")).status == 200

        await eventually(kept)
        return {"id": trace}

    async def place(self) -> Fields:
        """Where events go on from here."""
        return {"after": (await self.stack.get("/v1/events/page"))["next"]}

    async def key(self, **more: Any) -> Fields:
        """A key's id."""
        made = await self.post("/v1/admin/keys", {"label": f"guest {self.number()}"})
        return {"id": made["id"], **more}

    async def entry(self) -> Fields:
        """An entry of the vault."""
        key = f"berth_{self.number()}"
        await self.stack.call("PUT", f"/v1/vault/{key}", {"value": "seven", "secret": False})
        return {"key": key}

    async def document(self) -> Fields:
        """A collection with one document."""
        collection = f"ledger-{self.number()}"
        documents = [{"key": "first", "value": {"boats": 7}}]
        await self.post("/v1/documents", {"collection": collection, "documents": documents})
        return {"collection": collection}

    async def webhook(self) -> Fields:
        """A push webhook of a project of its own."""
        project = f"hook{self.number()}"
        await self.stack.call("PUT", f"/v1/git/webhooks/github/{project}", {})
        return {"kind": "github", "project": project}

    async def own_project(self) -> Fields:
        """A project that may be deleted."""
        name = f"shed{self.number()}"
        await self.memory(scope=f"project/{name}")
        return {"name": name}

    async def own_tenant(self) -> Fields:
        """A tenant that may be deleted, and a key of its own."""
        name = f"tenant{self.number()}"
        key = self.stack.key_of(tenant=name, role=KeyRole.ADMIN)
        await self.post("/v1/remember", {"content": "The last one out."}, key=key)
        return {"confirm": name, "_key": key}

    async def change(self) -> Fields:
        """What a push changed, in a clone that stands there; `_range` names it to git."""
        before = self.clone.git("rev-parse", "HEAD")
        after = self.clone.commit("Move a lamp", {"lamp.py": f"lamp = {self.number()}\n"})
        files = [{"path": "lamp.py", "status": "modified"}]
        commit = {"sha": after, "committed_at": self.clone.at.isoformat()}
        change = {"project": PROJECT, "branch": "main", "before": before, "after": after}
        told = {**change, "commits": [commit], "files": files}
        return {"change": told, "_range": f"{before}..{after}", "_clone": str(self.clone.root)}

    async def learned(self) -> Fields:
        """A memory of a file of the clone whose lines are not known."""
        commit = self.clone.git("rev-parse", "HEAD")
        git = {"commit": commit, "files": ["lamp.py"]}
        made = await self.memory("The `lamp` of number {} is never off.", git=git)

        async def anchored() -> bool:
            page = await self.stack.get(f"/v1/git/anchors?project={PROJECT}&limit=200")
            return made["id"] in {one["memory"] for one in page["items"]}

        await eventually(anchored)
        return {"project": PROJECT, "_id": made["id"], "_clone": str(self.clone.root)}

    def sql(self, statement: Any, *values: Any) -> None:
        """Changes the database past every rule."""
        assert rows(self.stack.admin_url, statement, *values)


@asynccontextmanager
async def open_world(run: TestRun) -> AsyncIterator[World]:
    """The system, for as long as it is used."""
    async with AsyncExitStack() as held:
        database = held.enter_context(fresh_database(run))
        nats = held.enter_context(own_nats(run))
        port, folder = find_free_port(), run.new_folder("doors")
        settings: dict[str, Any] = {"grpc_enabled": True, "grpc_port": port, "vault_key": VAULT_KEY}
        # What a call finds by words is enough: whether meaning is found, too, is asked elsewhere.
        settings |= {"audit_mode": "writes", "embedding_model": "none", "recall_sparse": "off"}
        models = await held.enter_async_context(chat_server(answer_shortly))
        settings |= engine_settings(models.url, folder / "agents")
        opened = running_stack(database, nats.url, model_home(), **settings)
        stack = await held.enter_async_context(opened)
        await held.enter_async_context(run_engine(stack))
        clone = new_clone(folder / "clone")
        clone.commit("Begin", {"lamp.py": "lamp = None\n"})
        typescript = None
        if builds_client():
            await build_client(folder / "typescript")
            typescript = await held.enter_async_context(run_client(folder / "typescript"))
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        yield World(
            stack=stack,
            port=port,
            nats_url=nats.url,
            folder=folder,
            stub=ReverieStub(await held.enter_async_context(channel)),
            mcp=await held.enter_async_context(_kept(over_http(f"{stack.url}/mcp", stack.key))),
            client=await held.enter_async_context(AsyncReverie(stack.url, stack.key)),
            clone=clone,
            typescript=typescript,
        )


@asynccontextmanager
async def _kept(opened: AbstractAsyncContextManager[Client]) -> AsyncIterator[Client]:
    """A client that is entered and left by a task of its own, whoever uses it."""
    ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with opened as client:
            ready.set_result(client)
            await over.wait()

    holding = asyncio.create_task(hold())
    yield await ready
    over.set()
    await holding
