"""Handlers of MCP requests: tools, with short ids, resources and prompts in the SDK's types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from reverie.domain.redaction.redactor import redact
from reverie.mcp import prompts, resources
from reverie.mcp.more_tool import available_operations, with_default_project
from reverie.mcp.rest_calls import (
    RestCallError,
    RestClient,
    call_rest,
    invalid_argument,
    rename_fields,
)
from reverie.mcp.tool_definition import Arguments, Tool, ToolHints, is_own_statement
from reverie.mcp.tool_results import format_problem, to_json
from reverie.mcp.tool_schemas import convert_values
from reverie.mcp.tools import select_tools

NOT_FOUND = -32002
"""JSON-RPC code of a missing resource."""

McpContext = ServerRequestContext[Any, Any]
RestProvider = Callable[[McpContext], RestClient]
ProjectProvider = Callable[[McpContext], str | None]
CallWrapper = Callable[[str], AbstractContextManager[None]]
"""Wraps the call of a tool, given its name; the SDK makes the span."""


class McpHandlers:
    """The handlers of a profile, full or minimal.

    `get_rest` returns the REST client of a request. `get_project` returns the default project of
    calls without a project; what users say of themselves is of none, if `knows_user`.
    """

    def __init__(
        self,
        get_rest: RestProvider,
        profile: str = "full",
        get_project: ProjectProvider = lambda _: None,
        wrap_call: CallWrapper = lambda _: nullcontext(),
        knows_user: Callable[[McpContext], bool] = lambda _: False,
    ) -> None:
        self._get_rest = get_rest
        self._get_project = get_project
        self._wrap_call = wrap_call
        self._knows_user = knows_user
        self._tools = select_tools(profile)

    def get_input_schema(self, name: str) -> dict[str, Any] | None:
        """The JSON schema of a tool's arguments."""
        tool = self._tools.get(name)
        return tool.input_schema if tool else None

    async def list_tools(self, ctx: McpContext, _: object = None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[to_mcp_tool(tool) for tool in self._tools.values()])

    async def call_tool(
        self, ctx: McpContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, self._unknown_tool_message(params.name))
        rest, project = self._get_rest(ctx), self._get_project(ctx)
        try:
            arguments: Arguments = convert_values(params.arguments or {}, tool.input_schema)
            arguments = await resolve_short_ids(rest, arguments)
            knows_user = self._knows_user(ctx)
            if tool.name == "more":
                arguments = with_default_project(arguments, project, knows_user)
            elif knows_user and is_own_statement(tool.name, arguments, project):
                project = None
            with self._wrap_call(params.name):
                body = await tool.call(rest, arguments, project)
        except RestCallError as error:
            text, data = format_problem(error.problem)
            return _build_result(text, data, is_error=True)
        if tool.render_text is None:
            return _build_result(to_json(body), body)
        return _build_result(tool.render_text(body, tool.with_project(arguments, project)), body)

    def _unknown_tool_message(self, name: str) -> str:
        if "more" in self._tools and name in available_operations():
            return f"unknown tool {name}: it is an operation of more"
        suggestions = get_close_matches(name, self._tools, n=1)
        hint = (
            f"did you mean {suggestions[0]}?"
            if suggestions
            else f"there are {', '.join(self._tools)}"
        )
        return f"unknown tool {redact(name[:100]).text}: {hint}"

    async def list_resources(self, ctx: McpContext, _: object) -> types.ListResourcesResult:
        entries = [
            types.Resource(
                uri=resource.uri,
                name=resource.name,
                description=resource.description,
                mime_type=resource.media_type,
            )
            for resource in resources.RESOURCES
        ]
        return types.ListResourcesResult(resources=entries)

    async def list_templates(self, ctx: McpContext, _: object) -> types.ListResourceTemplatesResult:
        source = resources.MEMORY_TEMPLATE
        template = types.ResourceTemplate(
            uri_template=source.uri,
            name=source.name,
            description=source.description,
            mime_type=source.media_type,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, ctx: McpContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            media_type, text = await resources.read_resource(
                self._get_rest(ctx), uri, self._get_project(ctx)
            )
        except RestCallError as error:
            raise _to_mcp_error(error) from None
        contents = [types.TextResourceContents(uri=uri, mime_type=media_type, text=text)]
        return types.ReadResourceResult(contents=list(contents))

    async def list_prompts(self, ctx: McpContext, _: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[_to_mcp_prompt(prompt) for prompt in prompts.PROMPTS]
        )

    async def get_prompt(
        self, ctx: McpContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        arguments, project = params.arguments or {}, self._get_project(ctx)
        try:
            description, text = await prompts.render_prompt(
                self._get_rest(ctx), params.name, arguments, project
            )
        except RestCallError as error:
            raise _to_mcp_error(error) from None
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=description, messages=[message])


def to_mcp_tool(tool: Tool) -> types.Tool:
    """A tool in the SDK's type."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=_to_mcp_annotations(tool.hints),
    )


def _to_mcp_annotations(hints: ToolHints) -> types.ToolAnnotations:
    if hints.read_only:
        return types.ToolAnnotations(read_only_hint=True)
    return types.ToolAnnotations(
        destructive_hint=hints.destructive, idempotent_hint=True if hints.idempotent else None
    )


def _to_mcp_prompt(prompt: prompts.McpPrompt) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=name, description=description, required=name in prompt.required)
        for name, description in prompt.arguments.items()
    ]
    return types.Prompt(name=prompt.name, description=prompt.description, arguments=arguments)


def _build_result(text: str, data: dict[str, Any], is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=data, is_error=is_error
    )


def _to_mcp_error(error: RestCallError) -> MCPError:
    """A protocol error that carries the problem document as data."""
    problem = error.problem
    code = {"not_found": NOT_FOUND, "invalid": types.INVALID_PARAMS}.get(
        problem.code, types.INTERNAL_ERROR
    )
    data = problem.model_dump(mode="json", exclude_none=True)
    return MCPError(code, f"{problem.code}: {problem.detail}", data)


_SHORT_ID = re.compile(r"[0-9a-fA-F-]{8,35}")
MAX_IDS = 50
"""Each id of a list takes a call or two, within one message."""
_MEMORY_FIELDS = frozenset({"from", "to", "depends_on"})


async def resolve_short_ids(rest: RestClient, arguments: Arguments) -> dict[str, Any]:
    """The arguments with full ids of memories and sessions.

    Raises `RestCallError` if a short id belongs to none or to several.
    """
    return {name: await _resolve(rest, name, value) for name, value in arguments.items()}


async def _resolve(rest: RestClient, name: str, value: Any) -> Any:
    if name in ("arguments", "edges") and isinstance(value, Mapping):
        return await resolve_short_ids(rest, value)
    if name in ("edges", "depends_on") and isinstance(value, list):
        if len(value) > MAX_IDS:
            raise invalid_argument(name, f"has too many items: at most {MAX_IDS}")
        return [await _resolve(rest, name, item) for item in value]
    if not isinstance(value, str) or not _SHORT_ID.fullmatch(value):
        return value
    try:
        if name in _MEMORY_FIELDS:
            return (await call_rest(rest, "GET", f"/v1/memories/{value}"))["id"]
        if name == "session":
            query = {"session": value, "limit": 1}
            found = (await call_rest(rest, "GET", "/v1/sessions", query))["items"]
            return found[0]["id"] if found else value
    except RestCallError as error:
        raise rename_fields(error, {name: "id"} if name in _MEMORY_FIELDS else {}) from None
    return value
