"""An import is checked as a whole, by the rules of the interfaces that write the same data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import product

from yarl import URL

from reverie.contracts.export_import import RECORD_TYPES
from reverie.domain.access.principals import KeyRole
from reverie.domain.core.ids import new_id
from tests.interfaces.openapi_examples import REQUEST_EXAMPLES
from tests.support.import_files import (
    AT,
    FAR,
    LATER,
    Line,
    edge_line,
    export_file,
    memory_line,
    send_import,
    session_line,
    stale_mark,
    version_line,
)
from tests.support.stack import Stack, eventually
from tests.support.tables import value

M = memory_line()
UNSOUND: tuple[tuple[Line, str], ...] = (
    (memory_line(kind="sorcery"), "kind"),
    (memory_line(tier="lava"), "tier"),
    (memory_line(colour="red"), "colour"),
    (memory_line(tenant="another"), "tenant"),
    (memory_line(updated=FAR), "updated"),
    (memory_line(valid_from=LATER, valid_to=AT), "valid_to"),
    (memory_line(version=2**31 - 2), "version"),
    (memory_line(key="連" * 700), "key"),
    (memory_line(key="file:src/x.py"), "key"),
    (memory_line(key=f"commit:{'a' * 40}"), "key"),
    (memory_line(metadata={"record": {"decided": ["x" * 60_000]}}), "metadata.record"),
    (memory_line("src/x.py", kind="file", key="mine"), "key"),
    (memory_line("Redis", kind="entity"), "key"),
    (memory_line(key="learn:a:b", metadata={"fact": "bogus"}), "metadata.fact"),
    (memory_line(git={"files": "src/a.ts"}), "git.files"),
    (memory_line(stale=[stale_mark(lines="oops")]), "stale.0.lines"),
    (memory_line(stale=[stale_mark(via=["not-a-uuid"])]), "stale.0.via.0"),
    (memory_line(stale=[stale_mark(change="sung")]), "stale.0.change"),
    (memory_line(usage={"count": 2**31 - 1, "boost": 0}), "usage.count"),
    (memory_line(kind="task", task={"state": "doing", "claimed_by": "ann"}), "task"),
    (memory_line(task={"state": "todo"}), "task"),
    (version_line(M, state={"kind": "bogus"}), "state.kind"),
    (version_line(M, state={"tier": "x"}), "state.tier"),
    (version_line(M, state={"tags": "x"}), "state.tags"),
    (version_line(M, state={"metadata": "str"}), "state.metadata"),
    (version_line(M, state={"valid_from": "never"}), "state.valid_from"),
    (version_line(M, state={"superseded_by": "never"}), "state.superseded_by"),
    (version_line(M, status="sung"), "status"),
    (version_line(M, state={"metadata": {"record": "junk"}}), "state.metadata.record"),
    (version_line(M, state={"key": f"commit:{'a' * 40}"}), "state.key"),
    (memory_line(source="commit", scope="global", git={"commit": "a" * 40}), "source"),
    (memory_line(source="commit"), "git"),
    (version_line(M, known_to=FAR), "known_to"),
    (version_line(M, known_from=LATER, known_to=AT), "known_to"),
    (edge_line(src=M["id"], dst=M["id"]), "dst"),
    (edge_line(kind="follows"), "kind"),
    (session_line(pending=-1), "pending"),
    ({"type": "anchor", "node": M["id"], "project": "p", "path": "a.ts", "name": "b.ts"}, "name"),
    (memory_line(confidence=float("nan")), ""),
)
"""Lines that are refused, and the field that is named."""


async def test_unsound_lines_refuse_a_file_as_a_whole_with_line_and_field(stack: Stack) -> None:
    sound = memory_line("sound beside all others")
    file = export_file(sound, *(line for line, _ in UNSOUND)) + b'\n{"type": "memory", oops'
    expected = [f"line {place}: {field}" for place, (_, field) in enumerate(UNSOUND, 3)]
    expected = [place.removesuffix(": ") for place in (*expected, f"line {len(UNSOUND) + 3}: ")]
    for query in ("", "?dry_run=true"):
        status, body = await send_import(stack, file, query)
        assert status == 422, body
        assert [error["field"] for error in body["errors"]] == expected
        assert "not a kind" in body["errors"][0]["reason"]
    assert (await stack.call("GET", f"/v1/memories/{sound['id']}")).status == 404


async def test_versions_of_scopes_that_the_key_may_not_write_are_refused(stack: Stack) -> None:
    writer = stack.key_of(role=KeyRole.WRITER, reads=("*",), writes=("project/shop",))
    mine = memory_line("mine")
    forged = version_line(mine, content="forged", state={"scope": "global", "tags": []})
    status, body = await send_import(stack, export_file(mine, forged), key=writer)
    assert (status, body["field"]) == (422, "line 3: scope")
    found = await stack.call("GET", "/v1/memories?scope=global&as_of=2026-01-15T00:00:00Z")
    assert "forged" not in json.dumps(found.body)


async def test_only_a_key_that_may_announce_changes_imports_memories_of_commits(
    stack: Stack,
) -> None:
    fields = {"key": f"commit:{'a' * 40}", "source": "commit", "git": {"commit": "a" * 40}}
    branch = "project/shop/feature/cart"
    writer = stack.key_of(role=KeyRole.WRITER, reads=("*",), writes=(branch,))
    forged = memory_line("Carts never expire", scope=branch, **fields)
    status, body = await send_import(stack, export_file(forged), key=writer)
    assert (status, body["field"]) == (422, "line 2: source")
    mine = memory_line("mine", scope=branch)
    state = {"scope": branch, "kind": "context", **fields}
    status, body = await send_import(
        stack, export_file(mine, version_line(mine, state=state)), key=writer
    )
    assert (status, body["field"]) == (422, "line 3: state.source")
    writer = stack.key_of(role=KeyRole.WRITER, reads=("*",), writes=("project/shop", branch))
    status, body = await send_import(stack, export_file(forged), key=writer)
    assert (status, body["created"]) == (200, 1)


async def test_times_to_come_do_no_harm(stack: Stack) -> None:
    """A validity may begin later, as it may in `remember`; what happened counts as of now."""
    future = "9998-01-01T00:00:00+00:00"
    git: Line = {"commit": "b" * 40, "files": ["src/a.ts"], "committed_at": future}
    git |= {"modified_at": {"src/a.ts": future}}
    claim = {"state": "doing", "claimed_by": "ann", "claimed_until": future}
    lasting = memory_line(
        "Carts expire after an hour, see src/a.ts", valid_from=future, git=git, created=AT
    )
    marked = memory_line("Baskets are carts", stale=[stale_mark(committed_at=future)])
    task = memory_line("Empty the carts", kind="task", task=claim)
    newest = memory_line("Carts have owners", created=LATER, updated=LATER)
    status, body = await send_import(stack, export_file(lasting, marked, task, newest))
    assert (status, body["created"]) == (200, 4), body
    now = datetime.now(UTC)
    shown = await stack.get(f"/v1/memories/{lasting['id']}")
    assert shown["valid_from"].startswith("9998")
    located = shown["provenance"]["git"]
    for time in (located["committed_at"], located["modified_at"]["src/a.ts"]):
        assert datetime.fromisoformat(time) <= now
    [stale] = (await stack.get("/v1/stale?project=shop"))["items"]
    assert datetime.fromisoformat(stale["evidence"][0]["committed_at"]) <= now
    held = (await stack.get(f"/v1/memories/{task['id']}"))["task"]["claimed_until"]
    assert datetime.fromisoformat(held) <= now + timedelta(days=2)
    # A memory of which the truth begins later is neither the newest, nor beyond doubt.
    text = (await stack.get("/v1/context?project=shop"))["markdown"]
    assert text.index("Carts have owners") < text.index("Carts expire after an hour")
    change = {"project": "shop", "branch": "main", "after": "c" * 40,
              "commits": [{"sha": "c" * 40, "subject": "x", "committed_at": now.isoformat()}],
              "files": [{"path": "src/a.ts", "status": "deleted"}]}  # fmt: skip

    async def is_marked() -> bool:
        items = (await stack.get("/v1/stale?project=shop"))["items"]
        return lasting["id"] in {item["memory"]["id"] for item in items}

    await eventually(lambda: _is_linked(stack, lasting["id"]))
    await stack.post("/v1/git/changes", change)
    await eventually(is_marked)


async def _is_linked(stack: Stack, memory: str) -> bool:
    shown = await stack.get(f"/v1/memories/{memory}")
    return any(one["kind"] == "file" for one in shown["neighbours"])


async def test_an_imported_version_never_stands_in_the_way_of_an_edit(stack: Stack) -> None:
    memory = memory_line("Ports are 3456", version=2)
    versions = [version_line(memory, number) for number in range(6)]
    status, body = await send_import(stack, export_file(memory, *versions))
    assert (status, body["created"], body["skipped"]) == (200, 3, 4)
    for n in range(4):
        edited = await stack.call(
            "PATCH", f"/v1/memories/{memory['id']}", {"content": f"Ports are {n}"}
        )
        assert edited.status == 200
    back = await stack.call("POST", f"/v1/memories/{memory['id']}/rollback", {"version": 1})
    assert back.status == 200
    assert (await stack.get(f"/v1/memories/{memory['id']}"))["content"] == "Carts expired"


async def test_an_anchor_belongs_to_the_project_of_its_node(stack: Stack) -> None:
    node = memory_line("src/a.ts", kind="file", key="file:src/a.ts", scope="project/a")
    anchor = {"type": "anchor", "node": node["id"], "path": "src/a.ts", "name": "a.ts"}
    writer = stack.key_of(role=KeyRole.WRITER, reads=("*",), writes=("project/a",))
    elsewhere = export_file(node, {**anchor, "project": "b"})
    status, body = await send_import(stack, elsewhere, key=writer)
    assert (status, body["field"]) == (422, "line 3: scope")
    status, body = await send_import(stack, elsewhere)
    assert (status, body["rejected"]) == (200, 1), "an administrator may write both"
    status, body = await send_import(stack, export_file(node, {**anchor, "project": "a"}))
    assert (status, body["created"], body["rejected"]) == (200, 1, 0)


async def test_a_key_of_an_agent_imports_as_that_agent(stack: Stack) -> None:
    ann = stack.key_of(role=KeyRole.WRITER, agent="ann")
    claim = {"state": "doing", "claimed_by": "bob", "claimed_until": FAR}
    forged = memory_line("Bob said so", agent="bob", actor="bob", kind="task", task=claim)
    status, _ = await send_import(
        stack, export_file(forged, version_line(forged, actor="bob")), key=ann
    )
    assert status == 200
    shown = await stack.get(f"/v1/memories/{forged['id']}")
    assert shown["provenance"]["agent"] == "ann"
    assert shown["task"]["claimed_by"] is None
    assert "bob" not in {one["actor"] for one in await stack.walked(
        f"/v1/memories/{forged['id']}/history", 50)}  # fmt: skip
    # What bob wrote stays bob's, whoever imports it again.
    theirs = memory_line("Bob wrote this", agent="bob", actor="bob")
    await send_import(stack, export_file(theirs))
    newer = {**theirs, "content": "Ann wrote this", "updated": LATER, "agent": "carol"}
    await send_import(stack, export_file(newer), key=ann)
    shown = await stack.get(f"/v1/memories/{theirs['id']}")
    assert (shown["content"], shown["provenance"]["agent"]) == ("Ann wrote this", "bob")


async def test_a_session_waits_for_a_dream_with_its_turns_only(stack: Stack) -> None:
    counts = {"turns": 9, "pending": 9, "pending_segments": 9, "pending_chars": 99}
    fresh = {"new_turns": 9, "new_segments": 9, "new_chars": 99, "new_since": AT}
    empty, one = session_line(**counts, **fresh), session_line(**counts, **fresh)
    turn = {"type": "turn", "id": str(new_id()), "session": one["id"], "ordinal": 0, "at": AT}
    turn |= {"role": "user", "content": "Why?"}
    status, _ = await send_import(stack, export_file(empty, one, turn))
    assert status == 200
    query = "select (turns, pending, pending_segments, pending_chars, new_turns)::text from session"
    counted = [
        value(stack.admin_url, f"{query} where id = %s", one_of["id"]) for one_of in (empty, one)
    ]
    assert counted == ["(0,0,0,0,0)", "(1,1,1,4,1)"]


async def test_imported_use_can_be_counted_on(stack: Stack) -> None:
    used = memory_line("The upload handler retries", usage={"count": 10**9, "boost": 0.1})
    status, _ = await send_import(stack, export_file(used))
    assert status == 200
    begun = await stack.post("/v1/sessions/start", {"agent": "claude", "project": "shop"})
    found = await stack.post("/v1/recall", {"query": "upload handler", "session": begun["session"]})
    assert found["memories"][0]["id"] == used["id"]


async def test_readers_and_ci_are_refused_before_their_body_is_read(stack: Stack) -> None:
    for role, address in product((KeyRole.READER, KeyRole.CI), (stack.url, stack.urls["ingest"])):
        url = URL(address)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = (
            f"POST /v1/import HTTP/1.1\r\nHost: here\r\n"
            f"Authorization: Bearer {stack.key_of(role=role)}\r\n"
            f"Content-Type: application/x-tar\r\nContent-Length: {2**29}\r\n\r\n"
        )
        writer.write(head.encode())
        assert b" 403 " in await reader.readline()
        writer.close()
        await writer.wait_closed()


async def test_a_scope_goes_with_one_file_only(stack: Stack) -> None:
    for kind in ("application/x-ndjson", "application/x-tar"):
        status, body = await send_import(stack, export_file(), "?scope=project/b", kind=kind)
        assert (status, body["field"]) == (422, "scope")
    writer = stack.key_of(role=KeyRole.WRITER, reads=("*",), writes=("project/a",))
    text = "<!-- segment: x -->\nCarts expire.\n"
    status, body = await send_import(stack, text, "?scope=project/b", writer, "text/markdown")
    assert (status, body["code"]) == (403, "forbidden")


async def test_the_example_of_the_document_is_imported(stack: Stack) -> None:
    status, body = await send_import(stack, REQUEST_EXAMPLES["POST /v1/import"])
    assert (status, body["created"]) == (200, 1)


async def test_an_edited_kind_gives_a_memory_of_a_file_its_tier(stack: Stack) -> None:
    text = "<!-- segment: x -->\n<!-- key: carts, kind: {} -->\nCarts expire.\n"
    for kind, tier in (("lesson", "warm"), ("convention", "hot")):
        scope = "?scope=project/shop"
        status, _ = await send_import(stack, text.format(kind), scope, kind="text/markdown")
        assert status == 200
        [shown] = (await stack.get("/v1/memories"))["items"]
        assert (shown["kind"], shown["tier"]) == (kind, tier)


async def test_other_requests_are_answered_while_an_import_is_checked(stack: Stack) -> None:
    uploaded = asyncio.Event()
    records = [memory_line(f"Fact {n}: orders keep cents in src/f{n}.ts") for n in range(300)]

    async def body() -> AsyncIterator[bytes]:
        yield export_file(*records, memory_line(kind="sorcery"))
        uploaded.set()

    importing = asyncio.create_task(send_import(stack, body()))
    await uploaded.wait()
    answered = 0
    while not importing.done():
        assert (await stack.call("GET", "/v1/memories?limit=1")).status == 200
        answered += 1
    status, refused = await importing
    assert (status, refused["field"]) == (422, "line 302: kind")
    assert answered >= 5


def test_every_column_of_an_exported_table_is_checked_or_derived(stack: Stack) -> None:
    derived = {"tenant", "doc", "enriched_version", "hash", "imported_version", "short"}
    derived |= {"terms", "words", "own_scopes"}
    for table, model in RECORD_TYPES.items():
        query = (
            "select string_agg(column_name, ' ') from information_schema.columns"
            " where table_schema = 'reverie' and table_name = %s"
        )
        columns = set(str(value(stack.admin_url, query, table)).split()) - derived
        assert columns <= set(model.model_fields), table
