"""`reverie console`: prints a link that signs in to the console once."""

from __future__ import annotations

import click

from reverie.cli.app.options import CommonOptions, common_options

LINK_PATH = "/console/links"


@click.command("console")
@common_options
def console(options: CommonOptions) -> None:
    """Print a link that opens the console in a browser, signed in with your key.

    The link works once, within 15 minutes. The key itself is not part of it.

    Example: reverie console
    """
    client = options.gateway()
    link = client.request("POST", LINK_PATH)
    url = client.url + link["path"]
    options.print_result({"url": url, "seconds": link["seconds"]}, url)


def create_console_link(gateway: str, api_key: str | None, ca_file: str) -> str | None:
    """The address of such a link; None without a key, or where the console is switched off."""
    from reverie.agent.gateway.http_client import (
        CallRefused,
        GatewayConnection,
        GatewayUnavailable,
    )

    if api_key is None:
        return None
    connection = GatewayConnection(gateway, api_key, 5.0, ca_file, agent="reverie-cli")
    try:
        link = connection.request("POST", LINK_PATH)
    except (CallRefused, GatewayUnavailable):
        return None
    return f"{gateway}{link['path']}"
