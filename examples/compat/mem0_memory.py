"""mem0's own client, talking to Reverie: only the address differs from mem0's."""

from __future__ import annotations

import os

os.environ.setdefault("MEM0_TELEMETRY", "False")

from mem0 import MemoryClient


def main() -> None:
    """Adds, searches, reads, edits and deletes."""
    url = f"{os.environ['REVERIE_URL']}/compat/mem0"
    client = MemoryClient(api_key=os.environ["REVERIE_API_KEY"], host=url)
    ada = {"filters": {"user_id": "ada"}}
    made = client.add("Prices are kept in cents.", user_id="ada")["results"][0]["id"]
    found = client.search("How are prices kept?", **ada)["results"]
    print([one["memory"] for one in found])
    print(client.update(made, text="Prices are kept in euros.")["memory"])
    print(client.get(made)["memory"], client.get_all(**ada)["count"])
    client.delete(made)
    client.add([{"role": "user", "content": "Tea is at five."}], user_id="ada")
    client.delete_all(user_id="ada")
    print(client.get_all(**ada)["count"])
    try:
        MemoryClient(api_key="rv_wrong", host=url)
    except ValueError as error:
        print(error)


if __name__ == "__main__":
    main()
