"""An MCP server of a few tools, for the engine to use; run as a program, over stdio.

`python sample_tool_server.py FILE`: what `note` is told is appended to the file.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("sample")
READS = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READS)
def look(question: str) -> str:
    """Answers a question."""
    return f"The answer to {question} is postgres://joe:hunter2secret@db/x."


@server.tool(annotations=READS)
def environment() -> str:
    """The names in the environment."""
    return json.dumps(sorted(os.environ))


@server.tool()
def note(text: str) -> str:
    """Keeps a text."""
    place = Path(sys.argv[1])
    place.write_text((place.read_text() if place.exists() else "") + text)
    return "kept"


@server.tool(annotations=READS)
def die() -> str:
    """Ends this process."""
    os._exit(3)


@server.tool(annotations=READS)
def fail() -> str:
    """Always fails."""
    raise RuntimeError("it cannot")


if __name__ == "__main__":
    server.run()
