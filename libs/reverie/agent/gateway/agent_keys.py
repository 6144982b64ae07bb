"""The keys of agents, which `reverie setup` creates so that none uses the administrator's.

A key is kept in `secrets/agents` of the home folder, readable by its owner only, and never in a
file of a project. Hooks wait for these imports, so only light modules are used.
"""

from __future__ import annotations

import json
import os
import re

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,80}")


class AgentKey:
    """The id and the text of a key."""

    def __init__(self, id: str, text: str) -> None:
        self.id = id
        self.text = text


def agent_key_path(home: str, agent: str, project: str) -> str | None:
    """The file of an agent's key for a project, or for all projects; None for no name of one."""
    if not _NAME.fullmatch(agent) or (project and not _NAME.fullmatch(project)):
        return None
    name = f"{agent}@{project}" if project else agent
    return os.path.join(home, "secrets", "agents", name)


def read_agent_key(home: str, agent: str, project: str) -> AgentKey | None:
    """The key that was made for exactly this agent and project."""
    path = agent_key_path(home, agent, project)
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
        return AgentKey(str(stored["id"]), str(stored["key"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def find_agent_key(home: str, agent: str, project: str) -> str:
    """The text of the key for the project, else of that for all projects, else ""."""
    key = read_agent_key(home, agent, project) or read_agent_key(home, agent, "")
    return key.text if key else ""
