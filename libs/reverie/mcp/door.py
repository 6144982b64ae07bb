"""What the server answers: our tools, resources and prompts in the SDK's types."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from typing import Any

import mcp_types as types

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from reverie.domain.redaction import redact
from reverie.mcp import prompts, resources
from reverie.mcp.answers import dumped, refusal
from reverie.mcp.rest import Failed, Rest
from reverie.mcp.tool import Hints, Tool
from reverie.mcp.tools import offered

NOT_FOUND = -32002
"""JSON-RPC code of a resource that is not there."""
PROTOCOL = types.LATEST_PROTOCOL_VERSION

Context = ServerRequestContext[Any, Any]
RestOf = Callable[[Context], Rest]
BoundTo = Callable[[Context], str | None]
Around = Callable[[str], AbstractContextManager[None]]
"""What goes around the call of a tool, by its name; the SDK makes the span."""


def _nobody(_: str) -> AbstractContextManager[None]:
    return nullcontext()


class Door:
    """The handlers of a profile, full or minimal.

    Calls are made with the `Rest` of each request. `project_of`: the project that calls without
    a place mean.
    """

    def __init__(
        self,
        rest_of: RestOf,
        profile: str = "full",
        project_of: BoundTo = lambda _: None,
        around: Around = _nobody,
    ) -> None:
        self._rest_of = rest_of
        self._project_of = project_of
        self._around = around
        self._tools = offered(profile)

    def inputs(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool's arguments."""
        tool = self._tools.get(name)
        return tool.inputs if tool else None

    async def list_tools(self, ctx: Context, _: object = None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[listed(tool) for tool in self._tools.values()])

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, self._unknown(params.name))
        rest, project = self._rest_of(ctx), self._project_of(ctx)
        try:
            with self._around(params.name):
                body = await tool.call(rest, params.arguments or {}, project)
        except Failed as failed:
            said, data = refusal(failed.problem)
            return _result(said, data, is_error=True)
        return _result(tool.text(body) if tool.text else dumped(body), body)

    def _unknown(self, name: str) -> str:
        near = get_close_matches(name, self._tools, n=1)
        there = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._tools)}"
        return f"unknown tool {redact(name[:100]).text}: {there}"

    async def list_resources(self, ctx: Context, _: object) -> types.ListResourcesResult:
        listed = [
            types.Resource(uri=one.uri, name=one.name, description=one.about, mime_type=one.kind)
            for one in resources.SOURCES
        ]
        return types.ListResourcesResult(resources=listed)

    async def list_templates(self, ctx: Context, _: object) -> types.ListResourceTemplatesResult:
        one = resources.TEMPLATE
        template = types.ResourceTemplate(
            uri_template=one.uri, name=one.name, description=one.about, mime_type=one.kind
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            kind, text = await resources.read(self._rest_of(ctx), uri, self._project_of(ctx))
        except Failed as failed:
            raise _error(failed) from None
        contents = [types.TextResourceContents(uri=uri, mime_type=kind, text=text)]
        return types.ReadResourceResult(contents=list(contents))

    async def list_prompts(self, ctx: Context, _: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[_prompt(one) for one in prompts.PROMPTS])

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        given, project = params.arguments or {}, self._project_of(ctx)
        try:
            about, text = await prompts.rendered(self._rest_of(ctx), params.name, given, project)
        except Failed as failed:
            raise _error(failed) from None
        said = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=about, messages=[said])


def listed(tool: Tool) -> types.Tool:
    """A tool as clients see it."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.inputs,
        output_schema=tool.outputs,
        annotations=_annotations(tool.hints),
    )


def _annotations(hints: Hints) -> types.ToolAnnotations:
    if hints.reads:
        return types.ToolAnnotations(read_only_hint=True)
    return types.ToolAnnotations(
        destructive_hint=hints.destroys, idempotent_hint=True if hints.repeatable else None
    )


def _prompt(one: prompts.Prompt) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=name, description=about, required=name in one.required)
        for name, about in one.arguments.items()
    ]
    return types.Prompt(name=one.name, description=one.about, arguments=arguments)


def _result(said: str, data: dict[str, Any], is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=said)], structured_content=data, is_error=is_error
    )


def _error(failed: Failed) -> MCPError:
    """A protocol error with the code and words of REST; the document is its data."""
    told = failed.problem
    code = {"not_found": NOT_FOUND, "invalid": types.INVALID_PARAMS}.get(
        told.code, types.INTERNAL_ERROR
    )
    data = told.model_dump(mode="json", exclude_none=True)
    return MCPError(code, f"{told.code}: {told.detail}", data)
