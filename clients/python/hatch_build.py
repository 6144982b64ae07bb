"""Builds the client from the sources of Reverie, with the versions of its pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NEEDED = {"httpx2", "pydantic", "tenacity"}
"""What the client imports; everything else belongs to servers and commands."""

PARTS = (
    "*",
    "adapters/*",
    "adapters/langgraph/*",
    "client/*",
    "contracts/*",
    "contracts/memories/*",
    "agent/__init__.py",
    "agent/tool_names.py",
    "agent/transcripts/__init__.py",
    "agent/transcripts/batch_limits.py",
    "agent/transcripts/claude_code.py",
    "agent/transcripts/turn_filter.py",
    "agent/transcripts/turns.py",
    "domain/__init__.py",
    "domain/access/__init__.py",
    "domain/access/scopes.py",
    "domain/context/__init__.py",
    "domain/context/active_set.py",
    "domain/context/budgets.py",
    "domain/context/text_rendering.py",
    "domain/core/__init__.py",
    "domain/core/confidence.py",
    "domain/core/consistency.py",
    "domain/core/errors.py",
    "domain/core/ids.py",
    "domain/core/kinds.py",
    "domain/core/memory.py",
    "domain/core/scope_patterns.py",
    "domain/extraction/__init__.py",
    "domain/extraction/dream_log.py",
    "domain/redaction/__init__.py",
    "domain/redaction/matching.py",
    "domain/redaction/randomness.py",
    "domain/redaction/redactor.py",
    "domain/redaction/secret_names.py",
    "domain/redaction/value_checks.py",
    "domain/redaction/vault_secrets.py",
    "domain/staleness/__init__.py",
    "domain/staleness/commit_marks.py",
    "domain/staleness/file_changes.py",
    "domain/staleness/grading.py",
    "domain/staleness/line_ranges.py",
    "domain/text/__init__.py",
    "domain/text/characters.py",
    "domain/text/index_terms.py",
    "domain/text/markdown.py",
    "domain/text/memory_fence.py",
    "domain/text/opencc/*",
    "domain/text/truncation.py",
)
"""The files below `reverie` that the client imports."""
LEFT_OUT = {"contracts/project_file.py"}
"""What only commands import."""
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
                if path.suffix in {".py", ".txt", ".typed"} and "_pb2" not in path.name
                if path.relative_to(sources / "reverie").as_posix() not in LEFT_OUT
            }
        )
