"""Hindsight's own client, talking to Reverie: only the address differs from Hindsight's."""

from __future__ import annotations

import os

from hindsight_client import Hindsight


def main() -> None:
    """Retains, recalls, lists and deletes."""
    url = f"{os.environ['REVERIE_URL']}/compat/hindsight"
    client = Hindsight(base_url=url, api_key=os.environ["REVERIE_API_KEY"])
    client.create_bank("shop")
    print(client.retain("shop", "Prices are kept in cents.", tags=["money"]).items_count)
    print([one.text for one in client.recall("shop", "How are prices kept?").results])
    print(client.list_memories("shop").total)
    print(client.delete_bank("shop").deleted_count, client.list_memories("shop").total)
    client.close()


if __name__ == "__main__":
    main()
