"""Announces new commits and missing code anchors of a clone at session start."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reverie.agent.gateway.http_client import CallRefused, GatewayConnection, GatewayUnavailable
from reverie.agent.git.anchoring import build_anchor_updates, locate_when_learned
from reverie.agent.git.announcement_log import ChangeReceipt
from reverie.agent.git.announcements import announce_new_commits
from reverie.agent.git.repository import GitRepository, open_repository
from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import ReverieError, Unavailable

MAX_ANCHORED = 50
"""Number of the newest memories that are anchored at the start of a session."""


@dataclass(eq=False)
class _ChangeRefused(ReverieError):
    """{detail}"""

    detail: str
    status: int


def announce_clone(gateway: GatewayConnection, root: str, project: str) -> None:
    """Announces commits and anchors memories; does nothing outside of a clone."""
    with suppress(ReverieError):
        clone, project_slug = open_repository(Path(root)), slugify(project)
        asyncio.run(
            announce_new_commits(
                clone, project_slug, lambda document: _send_change(gateway, document)
            )
        )
        _anchor_memories(gateway, clone, project_slug)


async def _send_change(gateway: GatewayConnection, document: dict[str, Any]) -> ChangeReceipt:
    try:
        response = gateway.request("POST", "/v1/git/changes", document)
    except GatewayUnavailable as error:
        raise Unavailable("the gateway", str(error)) from error
    except CallRefused as error:
        raise _ChangeRefused(str(error), error.status) from error
    return ChangeReceipt(bool(response["duplicate"]))


def _anchor_memories(gateway: GatewayConnection, clone: GitRepository, project: str) -> None:
    query = f"project={quote(project)}&limit={MAX_ANCHORED}"
    with suppress(GatewayUnavailable, CallRefused):
        unanchored = gateway.request("GET", f"/v1/git/anchors?{query}")["items"]
        anchors = build_anchor_updates(
            (memory, locate_when_learned(clone, memory)) for memory in unanchored
        )
        if anchors:
            gateway.request("POST", "/v1/git/anchors", {"project": project, "anchors": anchors})
