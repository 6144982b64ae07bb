"""Builds the client from the sources of Reverie, with the versions of its pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NEEDED = {"h11", "pydantic", "tenacity"}
"""What the client imports; everything else belongs to servers and commands."""

PARTS = (
    "*",
    "adapters/*",
    "agent/__init__.py",
    "agent/tool_names.py",
    "agent/transcripts/__init__.py",
    "agent/transcripts/batch_limits.py",
    "agent/transcripts/claude_code.py",
    "agent/transcripts/turn_filter.py",
    "agent/transcripts/turns.py",
    "adapters/langgraph/*",
    "client/*",
    "contracts/*",
    "contracts/memories/*",
    "domain/*",
    "domain/access/*",
    "domain/context/*",
    "domain/core/*",
    "domain/extraction/__init__.py",
    "domain/extraction/dream_runs.py",
    "domain/redaction/*",
    "domain/staleness/*",
    "domain/text/*",
    "domain/text/opencc/*",
)
"""The files below `reverie` that the client imports."""
OWN_EXTRAS = {
    "crewai": ["crewai>=1.15.30,<2; python_version < '3.14'"],
    "google-adk": ["google-adk>=2.13,<3"],
}
"""What cannot be installed beside the server, whose `mcp` and OpenTelemetry are newer."""


class SharedDependencies(MetadataHookInterface):
    """Fills in what both distributions share."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds dependencies and extras to the metadata."""
        whole = tomllib.loads((Path(self.root).parents[1] / "pyproject.toml").read_text())
        project = whole["project"]
        metadata["dependencies"] = [
            one for one in project["dependencies"] if re.split(r"[^\w-]", one)[0] in NEEDED
        ]
        metadata["optional-dependencies"] = {
            **project["optional-dependencies"],
            **OWN_EXTRAS,
        }


class ClientFiles(BuildHookInterface[Any]):
    """Adds the modules of the client; those of gRPC stay behind."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Names each file and its place in the wheel."""
        sources = Path(self.root).parents[1] / "libs"
        build_data["force_include"].update(
            {
                str(path): path.relative_to(sources).as_posix()
                for part in PARTS
                for path in (sources / "reverie").glob(part)
                if path.suffix in {".py", ".toml", ".txt", ".typed"} and "_pb2" not in path.name
            }
        )
