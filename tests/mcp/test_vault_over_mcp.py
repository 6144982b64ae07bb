"""Over MCP an agent reads back its counters and cursors, and no secret."""

from __future__ import annotations

from typing import Any

from tests.support.mcp_clients import call, over_http, refused
from tests.support.stack import Stack

SECRET = "sesame-Zq81-open-4471-hill"


async def test_state_is_read_back_and_a_secret_stays_out_of_the_conversation(
    stack: Stack,
) -> None:
    own = stack.apart()
    async with over_http(f"{own.url}/mcp", own.key) as client:

        async def do(operation: str, **arguments: Any) -> Any:
            return await call(client, "more", operation=operation, arguments=arguments)

        stored = await do("vault_put", key="cursor", value={"page": 7}, secret=False)
        assert (stored["version"], stored["secret"]) == (1, False)
        assert (await do("vault_get", key="cursor"))["value"] == {"page": 7}
        assert (await do("vault_put", key="token", value=SECRET, secret=True))["secret"] is True
        arguments = {"operation": "vault_get", "arguments": {"key": "token"}}
        words, _ = await refused(client, "more", **arguments)
        assert "is a secret" in words
        assert SECRET not in words
        about = await call(client, "more", operation="vault_get")
        assert "what is no secret" in about["about"]
