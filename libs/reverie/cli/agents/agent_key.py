"""Gives an agent a key of its own on the Reverie of this machine, renews it, and revokes it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reverie.agent.clone_paths import replace_atomically
from reverie.agent.gateway.agent_keys import agent_key_path, read_agent_key
from reverie.agent.gateway.location import read_first_key
from reverie.agent.gateway.user_detection import detect_user
from reverie.cli.app.gateway_client import GatewayClient, GatewayError, create_client
from reverie.cli.app.gateway_settings import read_raw_settings
from reverie.cli.app.options import CommonOptions
from reverie.domain.core.errors import Misconfigured, ReverieError, Unavailable


@dataclass(frozen=True)
class AgentKeyReport:
    """The result for the key: its file if it has one, and a line for the user."""

    file: str | None
    text: str


class AgentKeyManager:
    """The key of one agent, for one project or (with an empty `project`) for all."""

    def __init__(self, options: CommonOptions, agent: str, project: str) -> None:
        self._agent = agent
        self._project = project
        self._settings = read_raw_settings(options.home, options.sets)
        self._options = options
        self._home = os.path.realpath(str(self._settings["home"]))
        path = agent_key_path(self._home, agent, project)
        if path is None:
            raise Misconfigured("project", f"{project!r} is no name for the file of a key")
        self._path = Path(path)

    def ensure(self, renew: bool = False) -> AgentKeyReport:
        """Creates the key if the agent has none that works; `renew` replaces its text."""
        key = self._settings.get("api_key")
        if self._settings.get("gateway_url") or (key and key != read_first_key(self._home)):
            return AgentKeyReport(
                None,
                "The agent uses the configured gateway and key (REVERIE_GATEWAY_URL, "
                "REVERIE_API_KEY or config.toml). Give it one with less rights: "
                f"reverie key create {self._agent} --role writer --agent {self._agent}",
            )
        try:
            client = create_client(self._options.home, self._options.sets)
            return self._ensure(client, renew)
        except GatewayError as error:
            return AgentKeyReport(None, f"The agent has no key of its own: {error}")
        except Unavailable:
            return AgentKeyReport(
                None,
                "Reverie does not run, so the agent has no key of its own yet and uses the "
                "administrator's: start `reverie up`, then run this command again.",
            )

    def _ensure(self, client: GatewayClient, renew: bool) -> AgentKeyReport:
        key = read_agent_key(self._home, self._agent, self._project)
        if key is not None and self._is_active(client, key.id):
            if not renew:
                return AgentKeyReport(str(self._path), f"Its key is in {self._path}, as before.")
            body = {"overlap_seconds": 0}
            self._store(client.request("POST", f"/v1/admin/keys/{key.id}/rotate", None, body))
            return AgentKeyReport(str(self._path), f"Its key in {self._path} was replaced.")
        self._store(client.request("POST", "/v1/admin/keys", None, self._request()))
        rights = f"project {self._project} only" if self._project else "all projects"
        return AgentKeyReport(
            str(self._path), f"Its own key (writer, {rights}) is in {self._path}."
        )

    def revoke(self) -> AgentKeyReport | None:
        """Revokes the key and deletes its file; None if there is none."""
        key = read_agent_key(self._home, self._agent, self._project)
        if key is None:
            return None
        try:
            client = create_client(self._options.home, self._options.sets)
            if self._is_active(client, key.id):
                client.request("DELETE", f"/v1/admin/keys/{key.id}")
            text = "Its key was revoked."
        except ReverieError:
            text = f"Its key could not be revoked: run `reverie key revoke {key.id}`."
        self._path.unlink(missing_ok=True)
        return AgentKeyReport(None, text)

    def _is_active(self, client: GatewayClient, id: str) -> bool:
        try:
            stored = client.request("GET", f"/v1/admin/keys/{id}")
        except GatewayError as error:
            if error.problem.get("status") == 404:
                return False
            raise
        return not stored.get("revoked_at")

    def _request(self) -> dict[str, Any]:
        """A writer that is bound to the agent and the user; for one project, it writes to no other
        scope than theirs."""
        label = f"setup: {self._agent}"
        user = detect_user(str(self._settings.get("user") or ""), os.environ)
        body: dict[str, Any] = {"label": label, "role": "writer", "agent": self._agent}
        body |= {"user": user} if user else {}
        if not self._project:
            return body
        owners = [f"agent/{self._agent}/*", *(["user/*"] if user else [])]
        writes = [f"project/{self._project}/*", *owners, "session/*"]
        return {
            **body,
            "label": f"{label}, {self._project}",
            "project": self._project,
            "reads": [*writes, "user/*", "global"],
            "writes": writes,
        }

    def _store(self, created: Mapping[str, Any]) -> None:
        folder = self._path.parent
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True)
        text = json.dumps({"id": created["id"], "key": created["key"]})
        replace_atomically(self._path, f"{text}\n".encode(), 0o600)
