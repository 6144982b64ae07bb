"""Turns end to end: a message in, events and an answer out, memory before and after."""

from __future__ import annotations

import base64
import json

from reverie.testing.chat_server import ChatAnswer, ToolUse
from tests.console.sample_tenant import PNG
from tests.engine.conftest import Engine


async def test_an_answer_is_streamed_stored_and_kept_as_a_session(engine: Engine) -> None:
    engine.play([ChatAnswer("Prices are kept in cents.")])
    group = await engine.group("beck")
    posted = await engine.post(group, "How do we keep prices?")
    seen = await engine.watch(group, posted["after"])
    kinds = [event["type"] for event in seen]
    assert kinds[0] == "turn_started"
    assert kinds[-2:] == ["stop", "result"]
    said = "".join(event["data"]["text"] for event in seen if event["type"] == "text_delta")
    assert said == seen[-1]["data"]["content"] == "Prices are kept in cents."
    assert await engine.answers(group) == ["Prices are kept in cents."]
    [listed] = (await engine.stack.get("/v1/sessions"))["items"]
    turns = (await engine.stack.get(f"/v1/sessions/{listed['id']}/turns"))["items"]
    assert [(turn["role"], turn["content"]) for turn in turns] == [
        ("user", "How do we keep prices?"),
        ("assistant", "Prices are kept in cents."),
    ]


async def test_what_was_decided_before_is_shown_and_not_stored_again(engine: Engine) -> None:
    project = "shop-memory"
    decision = "Prices are kept in cents, because euros as floats lost money."
    body = {"content": decision, "kind": "decision", "scope": f"project/{project}"}
    await engine.stack.post("/v1/remember", body)
    engine.play([ChatAnswer("In cents, as decided.")])
    group = await engine.group("beck", project=project)
    posted = await engine.post(group, "How do we store prices, and why?")
    seen = await engine.watch(group, posted["after"])
    shown = engine.requests[0].texts[-1]
    assert decision in shown
    assert "<reverie-memory>" in shown
    [given] = [event for event in seen if event["type"] == "memory"]
    assert given["data"]["memories"]
    [listed] = (await engine.stack.get("/v1/sessions"))["items"]
    turns = (await engine.stack.get(f"/v1/sessions/{listed['id']}/turns"))["items"]
    assert all(decision not in turn["content"] for turn in turns)


async def test_an_agent_remembers_by_the_same_call_as_every_other(engine: Engine) -> None:
    said = "Deploys go through staging first, because production broke twice."
    call = ToolUse("remember", {"content": said, "kind": "convention"})
    engine.play([ChatAnswer(calls=(call,)), ChatAnswer("Noted.")])
    group = await engine.group("beck", project="shop-remember")
    await engine.say(group, "Remember how we deploy.")
    listed = (await engine.stack.get("/v1/memories", params={"kind": "convention"}))["items"]
    assert [(item["content"], item["scope"]) for item in listed] == [
        (said, "project/shop-remember")
    ]


async def test_a_stream_resumes_at_a_position_that_is_there_and_else_at_the_start(
    engine: Engine,
) -> None:
    engine.play([ChatAnswer("one two three four five six seven eight", seconds=0.2)])
    group = await engine.group("beck")
    posted = await engine.post(group, "Count.")
    first = await engine.watch(group, posted["after"], until="text_delta")
    rest = await engine.watch(group, first[-1]["at"])
    again = await engine.watch(group, posted["after"])
    assert [*first, *rest] == again
    said = "".join(event["data"]["text"] for event in again if event["type"] == "text_delta")
    assert said == "one two three four five six seven eight"
    assert (await engine.watch(group, 10**17))[-1]["type"] == "result"
    url = f"{engine.service.url}/v1/groups/{group}/events"
    for position in ("\u00b2", "7" * 5000):
        headers = {"Authorization": f"Bearer {engine.stack.key}", "Last-Event-ID": position}
        async with engine.stack.http.get(url, headers=headers) as answer:
            assert answer.status == 200, position


async def test_a_turn_is_stopped_and_what_was_said_is_kept(engine: Engine) -> None:
    released: list[bool] = []
    engine.play([ChatAnswer("thinking about it ...", hold=lambda: bool(released))])
    group = await engine.group("beck")
    posted = await engine.post(group, "Think for long.")
    await engine.watch(group, posted["after"], until="text_delta")
    reply = await engine.call("POST", f"/v1/groups/{group}/stop", {})
    assert reply.body["turns"] == list(posted["turns"].values())
    turns = await engine.ended(group, posted)
    released.append(True)
    assert turns["beck"]["status"] == "stopped"
    assert (await engine.answers(group))[0].startswith("thinking")


async def test_an_image_is_shown_described_and_kept_by_reference(engine: Engine) -> None:
    await engine.agent("blind", models=["blind"])
    shown = base64.b64encode(PNG).decode()
    answers = [ChatAnswer("It is a square."), ChatAnswer("A red [square].")]
    engine.play([*answers, ChatAnswer("Red."), ChatAnswer("Red, I am told.")])
    group = await engine.group("beck", "blind")
    image = {"media_type": "image/png", "data": shown}
    await engine.say(group, "What is this?", images=[image])
    await engine.say(group, "Which colour was it?")
    await engine.say(group, "@blind Which colour?")
    sees = [shown in json.dumps(request.body) for request in engine.requests]
    assert sees == [True, True, True, False]
    first = (await engine.log(group))["items"][0]
    assert first["content"] == "What is this?\n\n[image: image/png, A red [square).]"
    assert len(first["images"]) == 1
    assert any("A red [square)." in text for text in engine.requests[-1].texts)
    [listed] = (await engine.stack.get("/v1/sessions"))["items"]
    turns = (await engine.stack.get(f"/v1/sessions/{listed['id']}/turns"))["items"]
    assert "[images] A red [square]." in [turn["content"] for turn in turns]


async def test_an_image_that_nobody_describes_costs_no_answer(engine: Engine) -> None:
    engine.play([ChatAnswer("A square."), ChatAnswer(fault="401")])
    group = await engine.group("beck")
    image = {"media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    turns = await engine.say(group, "What is this?", images=[image])
    assert turns["beck"]["status"] == "done"
    said = [item["content"] for item in (await engine.log(group))["items"]]
    assert said == ["What is this?\n\n[image: image/png]", "A square."]


async def test_both_wire_formats_stream_text_and_tools(engine: Engine) -> None:
    await engine.agent("claude", models=["second"], persona="Be brief.")
    call = ToolUse("list_files", {"pattern": "*"})
    engine.play([ChatAnswer("Looking.", calls=(call,)), ChatAnswer("Done, all seen.")])
    group = await engine.group("claude")
    posted = await engine.post(group, "Look around.")
    seen = await engine.watch(group, posted["after"])
    kinds = {event["type"] for event in seen}
    assert {"text_delta", "tool_call", "tool_result", "usage", "result"} <= kinds
    assert "Be brief." in engine.requests[0].system
    assert await engine.answers(group) == ["Done, all seen."]


async def test_the_last_messages_are_listed_and_those_before_them(engine: Engine) -> None:
    engine.play([ChatAnswer(f"answer {number}") for number in range(3)])
    group = await engine.group("beck")
    for number in range(3):
        await engine.say(group, f"question {number}")
    path = f"/v1/groups/{group}/messages"
    last = (await engine.call("GET", f"{path}?before=0&limit=4")).body
    said = [item["content"] for item in last["items"]]
    assert said == ["question 1", "answer 1", "question 2", "answer 2"]
    assert (last["previous"], last["next"]) == (last["items"][0]["no"], None)
    first = (await engine.call("GET", f"{path}?before={last['previous']}&limit=4")).body
    assert [item["content"] for item in first["items"]] == ["question 0", "answer 0"]
    assert (first["previous"], first["next"]) == (None, None)
    begun = (await engine.call("GET", f"{path}?limit=4")).body
    assert begun["items"][:2] == first["items"]
    rest = (await engine.call("GET", f"{path}?after={begun['next']}&limit=4")).body
    assert (rest["items"], rest["next"]) == (last["items"][2:], None)
    assert (await engine.call("GET", f"{path}?after=1&before=9")).status == 422


async def test_a_correction_reaches_memory_by_whoever_answers(engine: Engine) -> None:
    project, old = "shop-corrected", "Packages are installed by npm."
    body = {"content": old, "kind": "preference", "scope": f"project/{project}"}
    memory = (await engine.stack.post("/v1/remember", body))["id"]
    engine.play(lambda _: ChatAnswer("Noted."))
    group = await engine.group("beck", "torvalds", project=project)
    note = {"notes.txt": "No longer tabs, use spaces."}
    await engine.say(group, "@torvalds Good. No longer npm, use pnpm.", files=note)
    assert (await engine.stack.get(f"/v1/memories/{memory}"))["status"] == "superseded"
    held = (await engine.stack.get("/v1/memories", params={"status": "active"}))["items"]
    said = [item["content"] for item in held]
    assert said == ["Packages are installed by pnpm (no longer npm)"]
