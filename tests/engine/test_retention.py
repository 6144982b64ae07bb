"""What the engine forgets: with time, and when a memory is erased."""

from __future__ import annotations

from reverie.bus.nats_bus import connect
from reverie.contracts.events import ENGINE_STREAM
from reverie.domain.access.principals import KeyRole
from reverie.runtime.settings.field_types import require_secret
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse
from tests.engine.conftest import Engine
from tests.support.stack import eventually
from tests.support.tables import TABLES, rows, run, value

NAME = "Leocadia Winterbottom"
SECRET = f"The warehouse is run by {NAME} at 0171 5550142"
AGED = """
update reverie.engine_turn set created = created - interval '31 days' where group_id = %s::uuid
"""
MADE_OF = """
insert into reverie.memory_turn (tenant, memory, turn)
select t.tenant, %s::uuid, t.id from reverie.turn t
join reverie.engine_group g on g.tenant = t.tenant and g.session = t.session
where g.id = %s::uuid and t.role = 'user'
"""
TURNS = "select messages::text, calls::text from reverie.engine_turn where group_id = %s::uuid"
TRACES = "select from reverie.recall_trace where position(%s in query) > 0"
KEYS = "select count(sealed_key) from reverie.engine_chain where group_id = %s::uuid"


async def _count_events(engine: Engine) -> int:
    url = require_secret(engine.service.settings.nats_url, "nats_url")
    async with connect(url, "test") as bus:
        await bus.wait_connected(20.0)
        subject = f"engine.{engine.stack.tenant}.*.event"
        return len(await bus.read_page(ENGINE_STREAM, subject, 0, 500))


def _holding(engine: Engine, text: str) -> list[str]:
    url = engine.stack.admin_url
    names = [name for (name,) in rows(url, TABLES, "reverie")]
    query = "select 1 from reverie.{} t where position(%s in t::text) > 0 limit 1"
    return [name for name in names if rows(url, query.format(name), text)]


async def _traced(engine: Engine, text: str, recalls: int) -> None:
    """Waits for the traces of recalls that asked for it: they are written after the answer."""

    async def are_written() -> bool:
        return len(rows(engine.stack.admin_url, TRACES, text)) >= recalls

    await eventually(are_written)


async def test_an_erased_memory_is_in_nothing_that_agents_said(engine: Engine) -> None:
    project = "shop-erased"
    body = {"content": SECRET, "kind": "context", "scope": f"project/{project}"}
    memory = (await engine.stack.post("/v1/remember", body))["id"]
    await engine.agent("clerk", ask=["write_file"])
    calls = [
        ToolUse("recall", {"question": "Who runs the warehouse?"}),
        ToolUse("remember", {"content": f"{SECRET}, says beck.", "kind": "context"}),
        ToolUse("write_file", {"path": "who.txt", "content": SECRET}),
    ]

    def script(asked: ChatRequest) -> ChatAnswer:
        if "name is rams" in asked.system:
            return ChatAnswer(f"I know: {SECRET}.")
        done = len(asked.results)
        return ChatAnswer(thinking=f"Well: {SECRET}.", calls=(calls[done],))

    engine.play(script)
    group = await engine.group("clerk", "rams", project=project)
    await engine.say(group, f"@rams Is it so? {SECRET}.")
    await engine.post(group, f"@clerk {SECRET}?")
    waiting = await engine.turn(group, "clerk", "waiting")
    await engine.stack.settled()
    await _traced(engine, SECRET, 2)
    assert {"engine_message", "engine_turn"} <= set(_holding(engine, NAME))
    assert await _count_events(engine)
    erased = await engine.stack.call("POST", f"/v1/memories/{memory}/erase", {})
    assert erased.status == 200, erased
    assert {"engine_message", "engine_turn"} <= erased.body["rows"].keys()
    assert SECRET not in str(await engine.log(group))
    assert _holding(engine, SECRET) == []
    assert await _count_events(engine) == 0
    await engine.call("POST", f"/v1/groups/{group}/stop", {"turn": waiting["id"]})
    await engine.turn(group, "clerk", "stopped")


async def test_a_conversation_loses_what_a_memory_was_made_of_whatever_its_case(
    engine: Engine,
) -> None:
    project, url = "shop-source", engine.stack.admin_url
    engine.play([ChatAnswer("Noted.")])
    group = await engine.group("beck", project=project)
    await engine.say(group, f"Please note: {SECRET.upper()}")
    body = {"content": SECRET, "kind": "context", "scope": f"project/{project}"}
    memory = (await engine.stack.post("/v1/remember", body))["id"]
    run(url, MADE_OF, memory, group)
    await _traced(engine, SECRET.upper(), 1)
    scopes = [f"project/{project}"]
    narrow = engine.stack.key_of(role=KeyRole.ADMIN, reads=scopes, writes=scopes)
    erased = await engine.stack.call("POST", f"/v1/memories/{memory}/erase", {}, key=narrow)
    assert erased.status == 200, erased
    said = (await engine.log(group))["items"][0]["content"]
    assert said == "Please note: [forgotten]"
    assert _holding(engine, SECRET.upper()) == []


async def test_how_an_old_turn_came_about_is_forgotten_and_what_was_said_stays(
    engine: Engine,
) -> None:
    call = ToolUse("list_files", {"pattern": "*.old"})
    engine.play([ChatAnswer(calls=(call,)), ChatAnswer("None."), ChatAnswer("As I said: none.")])
    group, url = await engine.group("beck"), engine.stack.admin_url
    await engine.say(group, "Any old files?")
    assert "list_files" in str(rows(url, TURNS, group))
    run(url, "select reverie.engine_sweep(interval '30 days')")
    assert "list_files" in str(rows(url, TURNS, group))
    run(url, AGED, group)
    run(url, "select reverie.engine_sweep(interval '30 days')")
    assert rows(url, TURNS, group) == [("[]", "{}")]
    await engine.say(group, "And now?")
    assert await engine.answers(group) == ["None.", "As I said: none."]
    assert any("[beck] None." in text for text in engine.requests[-1].texts)


async def test_a_call_that_nobody_decides_expires_with_the_key_of_its_author(
    engine: Engine,
) -> None:
    engine.play([ChatAnswer(calls=(ToolUse("write_file", {"path": "x", "content": "x"}),))])
    group, url = await engine.group("beck"), engine.stack.admin_url
    posted = await engine.post(group, "Write it.")
    await engine.turn(group, "beck", "waiting")
    assert value(url, KEYS, group) == 1
    run(url, AGED, group)
    run(url, "select reverie.engine_sweep(interval '30 days')")
    turns = await engine.ended(group, posted)
    assert (turns["beck"]["status"], turns["beck"]["outcome"]) == ("stopped", "expired")
    assert value(url, KEYS, group) == 0
    seen = await engine.watch(group, posted["after"])
    assert seen[-1]["data"]["status"] == "stopped"
    assert [event["data"]["reason"] for event in seen if event["type"] == "stop"] == ["expired"]
