"""Finds the gateway that settings select, and its key; plain values with few imports."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reverie.agent.gateway.location import GatewayLocation, locate_gateway
from reverie.agent.gateway.user_detection import detect_user

if TYPE_CHECKING:
    from reverie.runtime.settings.settings import Settings


@dataclass(frozen=True)
class GatewaySearch:
    """Where the gateway is looked for, and who asks. `default_url`: where it is by the settings."""

    home: str
    url: str
    api_key: str
    default_url: str
    ca: str
    user: str

    def find(self, agent: str = "", project: str = "") -> GatewayLocation | None:
        """The gateway and its key; None if none responds.

        `agent` and `project` are those that `reverie setup` made a key for.
        """
        from reverie.embedded.probe import fetch_health

        home = os.path.realpath(self.home)
        location = locate_gateway(home, self.url, self.api_key, self.default_url, agent, project)
        if location.state == "default" and fetch_health(location.url).status is None:
            return None
        return location if location.key else None


def describe_search(settings: Settings) -> GatewaySearch:
    """Where these settings look for the gateway, as plain values."""
    # Here and not above: what watches for `reverie up` has the values, and loads no settings.
    from reverie.runtime.settings.settings import base_url

    return GatewaySearch(
        home=str(settings.home),
        url=str(settings.gateway_url or ""),
        api_key=settings.api_key.get_secret_value() if settings.api_key else "",
        default_url=base_url(settings.host, settings.recall_port, settings.tls_cert is not None),
        ca=str(settings.trusted_ca_file or ""),
        user=detect_user(settings.user or "", os.environ),
    )


def find_gateway(settings: Settings, agent: str = "", project: str = "") -> GatewayLocation | None:
    """Returns the gateway that these settings select and its key; None if none responds.

    `agent` and `project` are those that `reverie setup` made a key for.
    """
    return describe_search(settings).find(agent, project)
