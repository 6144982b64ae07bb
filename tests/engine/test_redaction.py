"""Nothing that the engine stores holds a credential that somebody or a model said."""

from __future__ import annotations

from reverie.testing.chat_server import ChatAnswer, ToolUse
from reverie_services.engine.turns.capabilities import MAX_RESULT_CHARS
from tests.engine.conftest import Engine
from tests.support.tables import TABLES, rows

KEY = "AKIA" + "QWERTYUIOPASDFGH"
SAID = f"the key is {KEY}"


async def test_credentials_in_every_text_are_redacted_before_they_are_stored(
    engine: Engine,
) -> None:
    await engine.agent("clerk", persona=SAID, ask=["write_file"])
    group = await engine.group("clerk", name=SAID)
    call = ToolUse("write_file", {"path": "keys.txt", "content": SAID})
    engine.play([ChatAnswer(SAID, calls=(call,)), ChatAnswer(SAID)])
    posted = await engine.post(group, SAID, files={"keys.txt": SAID})
    turn = await engine.turn(group, "clerk", "waiting")
    [waiting] = turn["waits"]
    verdict = {"turn": turn["id"], "call": waiting, "approved": True, "reason": SAID}
    decided = await engine.call("POST", f"/v1/groups/{group}/approvals", verdict)
    assert decided.status == 200, decided
    ended = await engine.ended(group, posted)
    assert ended["clerk"]["status"] == "done"
    url = engine.stack.admin_url
    query = "select 1 from reverie.{} t where position(%s in t::text) > 0 limit 1"
    names = [name for (name,) in rows(url, TABLES, "reverie")]
    held = [name for name in names if rows(url, query.format(name), KEY)]
    assert held == []
    told = await engine.watch(group, 0)
    assert KEY not in str(told)
    assert KEY not in str(await engine.log(group))


async def test_a_credential_at_the_end_of_a_long_result_is_redacted_whole(engine: Engine) -> None:
    await engine.agent("clerk")
    group = await engine.group("clerk")
    place = engine.folder / "long.txt"
    place.parent.mkdir(exist_ok=True)
    place.write_text("-" * (MAX_RESULT_CHARS - 20) + f" {KEY}\n")
    read = ToolUse("read_file", {"path": place.name})
    engine.play([ChatAnswer(calls=(read,)), ChatAnswer("Read.")])
    await engine.say(group, "Read long.txt")
    [result] = engine.requests[-1].results
    assert len(result) > MAX_RESULT_CHARS / 2
    assert KEY[:12] not in result
