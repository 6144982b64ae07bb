"""Who answers in a group, how work is handed on, and what ends a chain."""

from __future__ import annotations

import pytest

from reverie.contracts.engine import Mode
from reverie.domain.access.principals import KeyRole
from reverie.domain.core.errors import InvalidInput
from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse
from reverie_services.engine.agents import choose_answering, narrow_mode
from tests.engine.conftest import Engine

THREE = ["ada", "bob", "cy"]


@pytest.mark.parametrize(
    ("answers", "text", "mentions", "chosen"),
    [
        ("default", "Hello.", [], ["ada"]),
        ("everyone", "Hello.", [], THREE),
        ("default", "@bob and @Cy, please.", [], ["bob", "cy"]),
        ("default", "Hello.", ["cy"], ["cy"]),
        ("everyone", "@bob alone", [], ["bob"]),
        ("default", "@all, please", [], THREE),
        ("default", "write to me@bob.org or @stranger", [], ["ada"]),
    ],
)
def test_mentions_choose_who_answers_and_name_members_only(
    answers: str, text: str, mentions: list[str], chosen: list[str]
) -> None:
    assert choose_answering(THREE, answers, text, mentions) == chosen
    with pytest.raises(InvalidInput):
        choose_answering(THREE, answers, text, ["dan"])


@pytest.mark.parametrize(
    ("own", "asked", "mode"),
    [
        ("unified", "unified", "unified"),
        ("unified", "plan", "plan"),
        ("unified", "dream", "dream"),
        ("plan", "unified", "plan"),
        ("plan", "dream", "plan"),
        ("dream", "unified", "dream"),
        ("dream", "plan", "plan"),
    ],
)
def test_what_is_asked_for_never_widens_the_mode_of_an_agent(
    own: Mode, asked: Mode, mode: Mode
) -> None:
    assert narrow_mode(own, asked) == mode


async def test_each_agent_of_a_message_keeps_its_own_mode(engine: Engine) -> None:
    await engine.agent("planner", mode="plan")
    engine.play(lambda _: ChatAnswer("1. Look. 2. Done."))
    group = await engine.group("beck", "planner")
    await engine.say(group, "@all, what now?")
    planner, beck = (
        next(asked.tools for asked in engine.requests if f"name is {name}" in asked.system)
        for name in ("planner", "beck")
    )
    assert "write_file" not in planner
    assert "remember" not in planner
    assert "write_file" in beck
    await engine.say(group, "@planner, again.", mode="unified")
    assert "write_file" not in engine.requests[-1].tools


async def test_sixteen_agents_answer_at_once(engine: Engine) -> None:
    names = [f"a{number}" for number in range(16)]
    for name in names:
        await engine.agent(name, persona=f"persona of {name}")
    engine.play(lambda asked: ChatAnswer(asked.system.split("persona of ")[1]))
    group = await engine.group(*names)
    turns = await engine.say(group, "@all, who are you?")
    assert {turn["status"] for turn in turns.values()} == {"done"}
    assert sorted(await engine.answers(group)) == sorted(names)
    reply = await engine.call("POST", "/v1/groups", {"agents": [*names, "beck"]})
    assert reply.status == 422


async def test_an_agent_hands_on_only_by_the_tool_and_not_its_mode(engine: Engine) -> None:
    await engine.agent("rams", mode="plan")

    def script(asked: ChatRequest) -> ChatAnswer:
        if "name is rams" in asked.system:
            return ChatAnswer("Green, and @fowler should look too.")
        if asked.is_after_tool:
            return ChatAnswer("Rams decides.")
        return ChatAnswer(calls=(ToolUse("route_forward", {"agent": "rams", "task": "Colour?"}),))

    engine.play(script)
    group = await engine.group("beck", "rams", "fowler")
    turns = await engine.say(group, "Choose a colour.")
    assert turns.keys() == {"beck", "rams"}
    assert turns["rams"]["depth"] == 1
    assert turns["rams"]["parent"] == turns["beck"]["id"]
    asked = next(request for request in engine.requests if "name is rams" in request.system)
    assert any("[beck, to you] Colour?" in text for text in asked.texts)
    assert "write_file" not in asked.tools


async def test_handing_on_to_oneself_is_refused(engine: Engine) -> None:
    call = ToolUse("route_forward", {"agent": "beck", "task": "You."})
    engine.play([ChatAnswer(calls=(call,)), ChatAnswer("Then I do it.")])
    group = await engine.group("beck", "rams")
    turns = await engine.say(group, "Do it.")
    assert turns.keys() == {"beck"}
    assert "cannot hand on to yourself" in engine.requests[-1].last


async def test_work_handed_on_and_on_is_ended_by_the_limits_of_the_chain(
    engine: Engine,
) -> None:
    following = {"beck": "rams", "rams": "beck"}

    def script(asked: ChatRequest) -> ChatAnswer:
        name = asked.system.split("name is ")[1].split(".")[0]
        if asked.is_after_tool:
            return ChatAnswer("")
        number = sum("to you]" in text for text in asked.texts) + len(engine.requests)
        task = {"agent": following[name], "task": f"Number {number}, yours."}
        return ChatAnswer(calls=(ToolUse("route_forward", task),))

    engine.play(script)
    group = await engine.group(*following)
    posted = await engine.post(group, "Whose is it?")
    seen = await engine.watch(group, posted["after"], until="notice")
    assert seen[-1]["data"]["what"] == "chain_limit"
    assert seen[-1]["data"]["limit"] in {"rate", "depth"}
    await engine.ended(group, posted)
    turns = (await engine.log(group))["turns"]
    assert 3 < len(turns) <= 31


async def test_calls_that_repeat_across_turns_end_the_chain(engine: Engine) -> None:
    following = {"beck": "rams", "rams": "beck"}

    def script(asked: ChatRequest) -> ChatAnswer:
        name = asked.system.split("name is ")[1].split(".")[0]
        if asked.is_after_tool:
            return ChatAnswer("ok")
        call = ToolUse("route_forward", {"agent": following[name], "task": "Yours."})
        return ChatAnswer(calls=(call,))

    engine.play(script)
    group = await engine.group(*following)
    posted = await engine.post(group, "Whose is it?")
    await engine.ended(group, posted)
    turns = (await engine.log(group))["turns"]
    assert [turn["outcome"] for turn in turns if turn["outcome"] != "end_turn"] == ["loop"]
    assert len(turns) == 6


async def test_who_may_not_read_or_write_a_group_is_kept_out(engine: Engine) -> None:
    group = await engine.group("beck", project="secret")
    path = f"/v1/groups/{group}/messages"
    elsewhere = engine.stack.key_of(reads=["project/other"], writes=["project/other"])
    assert (await engine.call("GET", path, key=elsewhere)).status == 404
    reader = engine.stack.key_of(role=KeyRole.READER, reads=["*"], writes=[])
    assert (await engine.call("GET", path, key=reader)).status == 200
    assert (await engine.call("POST", path, {"text": "Hi."}, key=reader)).status == 403
    writer = engine.stack.key_of(role=KeyRole.WRITER)
    assert (await engine.call("PUT", "/v1/agents/x", {}, key=writer)).status == 403


async def test_an_agent_recalls_with_the_rights_of_who_asks(engine: Engine) -> None:
    hidden = {"content": "The merger is planned for May.", "scope": "agent/beck"}
    await engine.stack.post("/v1/remember", {**hidden, "kind": "decision"})
    call = ToolUse("recall", {"question": "When is the merger planned?"})
    group = await engine.group("beck", project="shop-rights")
    narrow = engine.stack.key_of(
        role=KeyRole.WRITER, reads=["project/shop-rights"], writes=["project/shop-rights"]
    )
    engine.play(lambda asked: ChatAnswer("?") if asked.is_after_tool else ChatAnswer(calls=(call,)))
    posted = await engine.call(
        "POST", f"/v1/groups/{group}/messages", {"text": "When is the merger?"}, key=narrow
    )
    await engine.ended(group, posted.body)
    assert "May" not in engine.requests[-1].last
    await engine.say(group, "When is the merger?")
    assert "May" in engine.requests[-1].last


async def test_a_message_that_is_sent_again_is_said_once(engine: Engine) -> None:
    engine.play(lambda _: ChatAnswer("ok"))
    group = await engine.group("beck")
    path, headers = f"/v1/groups/{group}/messages", {"Idempotency-Key": "said-once"}
    first, second = [
        await engine.call("POST", path, {"text": "Hello."}, headers=headers) for _ in range(2)
    ]
    assert (first.status, second.status) == (202, 202)
    assert first.body == second.body
    await engine.ended(group, first.body)
    assert [item["content"] for item in (await engine.log(group))["items"]] == ["Hello.", "ok"]
