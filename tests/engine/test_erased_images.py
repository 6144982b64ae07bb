"""Images of messages go with what they show: their bytes cannot be masked."""

from __future__ import annotations

import base64
from uuid import uuid4

import pytest

from reverie.testing.chat_server import ChatAnswer
from tests.console.sample_tenant import PNG
from tests.engine.conftest import Engine
from tests.support.stack import eventually
from tests.support.tables import run, value

SHOWN = "Leocadia Winterbottom runs the warehouse."
LEFT = "select count(*) from reverie.engine_image where group_id = %s::uuid"
OF_TENANT = "select count(*) from reverie.engine_image where tenant = %s"
MADE_OF = """
insert into reverie.memory_turn (tenant, memory, turn)
select t.tenant, %s::uuid, t.id from reverie.turn t
join reverie.engine_group g on g.tenant = t.tenant and g.session = t.session
where g.id = %s::uuid and position(%s in t.content) > 0
"""
MADE_OF_SESSION = """
insert into reverie.memory_turn (tenant, memory, turn)
select tenant, %s::uuid, id from reverie.turn where session = %s::uuid
"""


async def _show(engine: Engine, answer: str, description: str, project: str) -> str:
    """A group with a message that brings an image, answered and described."""
    engine.play([ChatAnswer(answer), ChatAnswer(description)])
    group = await engine.group("beck", project=project)
    image = {"media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    await engine.say(group, "What is this?", images=[image])
    assert value(engine.stack.admin_url, LEFT, group) == 1
    return group


async def _images(engine: Engine, group: str) -> tuple[int, int]:
    """How many images of a group are stored, and how many its messages name."""
    named = sum(len(item["images"]) for item in (await engine.log(group))["items"])
    return value(engine.stack.admin_url, LEFT, group), named


async def _erase(engine: Engine, project: str, content: str, group: str, source: str = "") -> None:
    """Erases a memory of the project, made of the turns of the group that quote `source`."""
    body = {"content": content, "kind": "context", "scope": f"project/{project}"}
    memory = (await engine.stack.post("/v1/remember", body))["id"]
    if source:
        run(engine.stack.admin_url, MADE_OF, memory, group, source)
    erased = await engine.stack.call("POST", f"/v1/memories/{memory}/erase", {})
    assert erased.status == 200, erased


@pytest.mark.parametrize("source", ["", "What is this?", "A note.", SHOWN])
async def test_an_image_goes_with_the_memory_that_its_description_or_message_tells(
    engine: Engine, source: str
) -> None:
    """The description is the memory's content, or the memory was made of what quotes `source`."""
    project = f"p{uuid4().hex[:8]}"
    content = "Somebody runs a warehouse." if source else SHOWN
    group = await _show(engine, "A note.", SHOWN, project)
    await _erase(engine, project, content, group, source)
    assert await _images(engine, group) == (0, 0)
    if not source:
        said = (await engine.log(group))["items"][0]["content"]
        assert said == "What is this?\n\n[image: image/png, [forgotten]]"


async def test_an_image_stays_where_something_else_is_erased(engine: Engine) -> None:
    project, stack = f"p{uuid4().hex[:8]}", engine.stack
    group = await _show(engine, f"I know that {SHOWN}", "A red square, alone.", project)
    await _erase(engine, project, SHOWN, group)
    assert await _images(engine, group) == (1, 1)
    # Turns of another session, with the ids that the engine gives to its own.
    asked, answered = (await engine.log(group))["items"]
    forged = [asked["id"], f"{asked['id']}.images", answered["turn"]]
    turns = [{"role": "user", "content": "Ours.", "external_id": id} for id in forged]
    session = (await stack.post("/v1/sessions/start", {"agent": "ann"}))["session"]
    await stack.post("/v1/turns", {"session": session, "turns": turns})
    body = {"content": f"{SHOWN} Still.", "kind": "context", "scope": f"project/{project}"}
    memory = (await stack.post("/v1/remember", body))["id"]
    run(stack.admin_url, MADE_OF_SESSION, memory, session)
    assert (await stack.call("POST", f"/v1/memories/{memory}/erase", {})).status == 200
    assert await _images(engine, group) == (1, 1)


async def test_an_image_whose_description_holds_a_secret_goes_once_that_is_known(
    engine: Engine,
) -> None:
    secret = f"winter-{uuid4().hex}"
    project = f"p{uuid4().hex[:8]}"
    shown = await _show(engine, "A note.", f"A note with the word {secret}.", project)
    other = await _show(engine, f"The word is {secret}.", "A red square, alone.", project)
    path = f"/v1/vault/door?scope=project/{project}"
    kept = await engine.stack.call("PUT", path, {"value": secret, "secret": True})
    assert kept.status in {200, 201}, kept

    async def is_gone() -> bool:
        return await _images(engine, shown) == (0, 0)

    await eventually(is_gone)
    assert secret not in str(await engine.log(shown))
    assert await _images(engine, other) == (1, 1)


@pytest.mark.parametrize("what", ["session", "project", "tenant"])
async def test_no_image_is_left_of_what_is_deleted(engine: Engine, what: str) -> None:
    project, stack = f"p{uuid4().hex[:8]}", engine.stack
    group = await _show(engine, "A note.", "A red square, alone.", project)
    scope = (await engine.call("GET", "/v1/groups?limit=1")).body["items"][0]["scope"]
    path, body = {
        "session": (f"/v1/admin/scopes?scope={scope}", None),
        "project": (f"/v1/admin/projects/{project}", None),
        "tenant": ("/v1/admin/tenant", {"confirm": stack.tenant}),
    }[what]
    tenant = stack.number()
    assert (await stack.call("DELETE", path, body)).status == 200

    async def is_gone() -> bool:
        return bool(value(stack.admin_url, LEFT, group) == 0)

    await eventually(is_gone)
    assert value(stack.admin_url, OF_TENANT, tenant) == 0
