"""Routes of the engine: agents, groups, messages, events, approvals."""

from __future__ import annotations

import base64
from collections.abc import Container, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from reverie.contracts.engine import (
    AgentBody,
    AgentInfo,
    AgentList,
    ApproveRequest,
    CreateGroupRequest,
    GroupBody,
    GroupImage,
    GroupPage,
    MessageBody,
    MessagePage,
    PostedMessage,
    PostMessageRequest,
    SpendBody,
    StopRequest,
    StopResponse,
    TurnInfo,
)
from reverie.contracts.events import ENGINE_STREAM, is_position
from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import Forbidden, InvalidInput, Unavailable
from reverie.domain.core.ids import new_id
from reverie.runtime.http.calls import Call, Reply
from reverie.runtime.http.pagination import IdCursor, PageQuery, cut_page
from reverie.runtime.http.picture_replies import build_picture_reply, wants_bytes
from reverie.runtime.http.routes import RouteTable
from reverie.runtime.http.streaming import StreamingReply
from reverie.runtime.http.validation import QueryParams, check_size
from reverie.runtime.observability.tracing import trace_headers
from reverie.store.engine.conversations import AgentGroup
from reverie.store.engine.turns import NewTurns
from reverie_services.engine.agents import choose_answering, resolve_agents
from reverie_services.engine.attachments import check_images, render_message
from reverie_services.engine.dependencies import ConversationDependencies
from reverie_services.engine.events import SSE_HEADERS
from reverie_services.engine.prompts import PERSONAS

_SSE_EXAMPLE = 'id: 42\nevent: text_delta\ndata: {"type": "text_delta", "data": {"text": "Hi"}}\n\n'

routes = RouteTable[ConversationDependencies]()
message_routes = RouteTable[ConversationDependencies]()
"""Routes whose body may be as large as `large_body_limit`."""


class MessageQuery(QueryParams):
    """The messages after `after`, or the last ones before `before`; at most `limit`.

    A `before` of 0 is the end of the conversation.
    """

    after: Annotated[int, Field(ge=0)] = 0
    before: Annotated[int, Field(ge=0)] | None = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100


class EventPositionQuery(QueryParams):
    """The position to resume from; without it, only new events."""

    after: Annotated[int, Field(ge=0)] | None = None


@routes.add("GET /v1/agents")
async def list_agents(deps: ConversationDependencies, call: Call[None, None]) -> AgentList:
    """List agents of the engine."""
    stored = await deps.conversations.list_agents(call.principal.tenant)
    items = [
        AgentInfo(name=name, built_in=name not in stored, spec=spec.model_dump(mode="json"))
        for name, spec in sorted(resolve_agents(stored).items())
    ]
    models, tools = sorted(deps.models.endpoints), deps.settings.tool_names
    servers = sorted(deps.settings.servers)
    return AgentList(items=items, models=models, tools=tools, servers=servers)


@routes.add("GET /v1/agents/spend")
async def get_spend(deps: ConversationDependencies, call: Call[None, None]) -> SpendBody:
    """Get what agents spent today."""
    spent = await deps.conversations.load_spend(call.principal.tenant)
    agents = {name: {"tokens": of[0], "micro_usd": of[1]} for name, of in spent.items()}
    limits = deps.settings.spend_limits(None, None)
    known = {name: value for name, value in limits.items() if value is not None}
    return SpendBody(agents=agents, limits=known)


@routes.add("PUT /v1/agents/{name}")
async def put_agent(deps: ConversationDependencies, call: Call[AgentBody, None]) -> AgentInfo:
    """Create or change an agent of the engine."""
    call.principal.check_admin()
    name, body = call.path["name"], call.body
    if slugify(name) != name or name == "all":
        raise InvalidInput("name", "must be a slug of a-z 0-9 _ -, and not `all`")
    _check_registered("models", body.models, deps.models.endpoints)
    _check_registered("tools", body.tools or [], deps.settings.tool_names)
    _check_registered("servers", body.servers, deps.settings.servers)
    spec = body.model_dump(mode="json")
    spec["persona"] = call.redactor.redact(body.persona).text
    await deps.conversations.put_agent(call.principal.tenant, name, spec)
    return AgentInfo(name=name, built_in=False, spec=spec)


@routes.add("DELETE /v1/agents/{name}")
async def delete_agent(deps: ConversationDependencies, call: Call[None, None]) -> AgentInfo:
    """Delete an agent of the engine."""
    call.principal.check_admin()
    name = call.path["name"]
    await deps.conversations.delete_agent(call.principal.tenant, name)
    return AgentInfo(name=name, built_in=name in PERSONAS, spec={})


@routes.add("POST /v1/groups", status=201)
async def create_group(
    deps: ConversationDependencies, call: Call[CreateGroupRequest, None]
) -> GroupBody:
    """Create a group of agents: one conversation, one session."""
    principal, body = call.principal, call.body
    agents = list(dict.fromkeys(body.agents))
    known = resolve_agents(await deps.conversations.list_agents(principal.tenant))
    _check_registered("agents", agents, known)
    group = new_id()
    name = call.redactor.redact(body.name or ", ".join(agents)).text
    async with deps.open_memory(_read_key(call)) as reverie:
        session = await reverie.start_session(
            principal.agent or agents[0],
            project=body.project,
            group=str(group),
            external_id=f"group {group}",
            include_context=False,
        )
    project = slugify(body.project) if body.project else principal.project
    created = AgentGroup(
        group,
        name,
        session.session,
        session.scope,
        project,
        agents,
        body.answers,
        datetime.now(UTC),
    )
    await deps.conversations.add_group(principal.tenant, created)
    return _build_group(created)


@routes.add("GET /v1/groups")
async def list_groups(deps: ConversationDependencies, call: Call[None, PageQuery]) -> GroupPage:
    """List groups, newest first."""
    query = call.query
    rows = await deps.conversations.list_groups(call.principal, query.before_id(), query.limit + 1)
    items, next_cursor = cut_page(rows, query.limit, lambda group: IdCursor(id=group.id))
    return GroupPage(items=[_build_group(group) for group in items], next=next_cursor)


@message_routes.add("POST /v1/groups/{id}/messages", status=202)
async def post_message(
    deps: ConversationDependencies, call: Call[PostMessageRequest, None]
) -> PostedMessage:
    """Say something in a group; agents answer in turns of their own."""
    principal, body = call.principal, call.body
    group = await _writable_group(deps, call)
    check_images(body)
    text = call.redactor.redact(render_message(body)).text
    check_size("text", text, deps.settings.message_bytes, "turn_limit")
    answering = choose_answering(group.agents, group.answers, body.text, body.mentions)
    known = resolve_agents(await deps.conversations.list_agents(principal.tenant))
    _check_registered("agents", answering, known)
    # Each agent runs in its own mode, or a narrower one.
    turns = NewTurns(answering, [new_id() for _ in answering], body.mode or "unified")
    images = [(new_id(), image.media_type, image.data) for image in body.images]
    _, after = await deps.bus.sequence_range(ENGINE_STREAM)
    message = new_id()
    number, tickets = await deps.turns.post(
        (principal.tenant, principal.tenant_name),
        group.id,
        principal.effective_user or principal.agent or "user",
        text,
        images,
        turns,
        _read_key(call),
        deps.settings.chain,
        trace_headers(),
        message,
    )
    deps.publisher.publish_after_reply(call, principal.tenant, tickets)
    by_agent = dict(zip(turns.agents, turns.ids, strict=True))
    return PostedMessage(id=message, no=number, turns=by_agent, after=after)


@routes.add("GET /v1/groups/{id}/messages")
async def list_messages(
    deps: ConversationDependencies, call: Call[None, MessageQuery]
) -> MessagePage:
    """List what was said in a group, and its newest turns."""
    group, query = await _readable_group(deps, call), call.query
    tenant = call.principal.tenant
    if query.before is not None and query.after:
        raise InvalidInput("before", "goes without `after`")
    span, size = (query.after, query.before), query.limit + 1
    rows = await deps.conversations.list_messages(tenant, group.id, *span, size)
    turns = await deps.conversations.list_turns(tenant, group.id, 100)
    # One more than asked for shows whether there are others.
    is_cut, is_backward = len(rows) == size, query.before is not None
    kept = rows[is_cut:] if is_backward else rows[: query.limit]
    return MessagePage(
        items=[MessageBody(**vars(row)) for row in kept],
        turns=[
            TurnInfo(**vars(turn), created_at=turn.created, ended_at=turn.ended) for turn in turns
        ],
        next=kept[-1].no if is_cut and not is_backward else None,
        previous=kept[0].no if is_cut and is_backward else None,
    )


@routes.add(
    "GET /v1/groups/{id}/images/{image}",
    response=GroupImage,
    response_examples={"image/png": "the bytes of the image"},
)
async def get_image(deps: ConversationDependencies, call: Call[None, None]) -> Reply:
    """Get an image of a message; `Accept: image/*` gets the bytes themselves, as a download."""
    group = await _readable_group(deps, call)
    id = _parse_id("image", call.path["image"])
    image = await deps.conversations.get_image(call.principal.tenant, group.id, id)
    if not wants_bytes(call):
        data = base64.b64encode(image.data).decode()
        fields = {"id": id, "media_type": image.media_type, "size": len(image.data)}
        return Reply(body=GroupImage(**fields, data=data), headers={"Vary": "Accept"})
    reply = build_picture_reply(image.data, image.media_type, id.hex[-12:])
    # An image never changes, but it may be erased: caches must revalidate it.
    headers = {"ETag": f'"{id}"', "Cache-Control": "private, no-cache", "Vary": "Accept"}
    return replace(reply, headers={**reply.headers, **headers})


@routes.add(
    "GET /v1/groups/{id}/events",
    streaming=True,
    response_examples={"text/event-stream": _SSE_EXAMPLE},
)
async def stream_group_events(
    deps: ConversationDependencies, call: Call[None, EventPositionQuery]
) -> StreamingReply:
    """Stream what happens in the turns of a group, from any position of the last day."""
    group = await _readable_group(deps, call)
    header = call.headers.get("Last-Event-ID", "").strip()
    requested = int(header) if is_position(header) else call.query.after
    after = await _find_start(deps, requested)
    deps.watchers.check_places(call.principal)
    chunks = deps.watchers.watch(call.principal, group.id, after)
    return StreamingReply(chunks, SSE_HEADERS, endless=True)


@routes.add("POST /v1/groups/{id}/approvals")
async def approve_call(
    deps: ConversationDependencies, call: Call[ApproveRequest, None]
) -> StopResponse:
    """Approve or deny a tool call that waits; the turn goes on once all are decided."""
    group, body = await _writable_group(deps, call), call.body
    tenant = (call.principal.tenant, call.principal.tenant_name)
    verdict = {"approved": body.approved, "reason": call.redactor.redact(body.reason).text}
    tickets = await deps.turns.approve(tenant, group.id, body.turn, body.call, verdict)
    deps.publisher.publish_after_reply(call, call.principal.tenant, tickets)
    return StopResponse(turns=[body.turn] if tickets else [])


@routes.add("POST /v1/groups/{id}/stop")
async def stop_turns(deps: ConversationDependencies, call: Call[StopRequest, None]) -> StopResponse:
    """Stop a turn of a group, or all that are open."""
    group = await _writable_group(deps, call)
    tenant = (call.principal.tenant, call.principal.tenant_name)
    stopped, tickets = await deps.turns.stop(tenant, group.id, call.body.turn)
    deps.publisher.publish_after_reply(call, call.principal.tenant, tickets)
    return StopResponse(turns=stopped)


async def _find_start(deps: ConversationDependencies, after: int | None) -> int:
    """The end, without a position; the start, if the stream of the position was lost."""
    try:
        first, last = await deps.bus.sequence_range(ENGINE_STREAM)
    except Unavailable:
        if after is None:
            raise
        return after
    if after is None:
        return last
    return after if after <= last else first - 1


async def _readable_group(deps: ConversationDependencies, call: Call[Any, Any]) -> AgentGroup:
    return await deps.conversations.get_group(call.principal, _parse_id("id", call.path["id"]))


async def _writable_group(deps: ConversationDependencies, call: Call[Any, Any]) -> AgentGroup:
    group = await _readable_group(deps, call)
    call.principal.check_write(group.scope)
    return group


def _parse_id(field: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(
            field, f"must be the id of {'a group' if field == 'id' else 'an image'}"
        ) from None


def _read_key(call: Call[Any, Any]) -> str:
    """The caller's own key or token, with which its agents will call memory."""
    scheme, _, key = call.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Forbidden("let agents answer without a key in", "*")
    return key.strip()


def _check_registered(field: str, names: Iterable[str], registered: Container[str]) -> None:
    for name in names:
        if name not in registered:
            raise InvalidInput(field, f"{name[:80]!r} is unknown here")


def _build_group(group: AgentGroup) -> GroupBody:
    fields = {name: value for name, value in vars(group).items() if name != "created"}
    return GroupBody(**fields, created_at=group.created)
