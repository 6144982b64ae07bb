"""Who may say and hear what on the bus: a user for each service, and one that makes the streams.

Inboxes carry the answers of JetStream: each user has its own, so that none hears another's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from reverie.bus.streams import DREAM_WORKERS, STALENESS_CHANGES, ConsumerSpec

ACCOUNT = "REVERIE"
"""The account of all of them: what it keeps and says, no other account sees or hears."""
KEEPER = "reverie"
"""The user of migrations and operators, who makes streams; it may do everything."""


def _takes(spec: ConsumerSpec) -> list[str]:
    """What reading one durable consumer needs."""
    place = f"{spec.stream}.{spec.name}"
    return [
        f"$JS.API.CONSUMER.INFO.{place}",
        f"$JS.API.CONSUMER.MSG.NEXT.{place}",
        f"$JS.ACK.{place}.>",
        f"$JS.API.STREAM.INFO.{spec.stream}",
        f"dead.{spec.stream}.>",
    ]


_TOLD = ["memory.*.>", "dream.*.*.requested"]
PUBLISHES: Mapping[str, list[str]] = {
    # It sweeps the outbox of all, rescues dead letters, and forgets what is deleted.
    "ingest": [*_TOLD, "git.*.*.changed", "dead.>", "$JS.API.>", "$JS.ACK.>"],
    "dream": [*_TOLD, *_takes(DREAM_WORKERS)],
    "staleness": [*_TOLD, "git.*.*.changed", *_takes(STALENESS_CHANGES)],
}
"""What each service may publish, by its user; recall needs no bus."""


def inbox_of(user: str) -> str:
    """The prefix of a user's inboxes; that of NATS itself for one without a limit."""
    return f"_INBOX_{user}" if user in PUBLISHES else "_INBOX"


def user_in(url: str) -> str:
    """The user that an address names, if any."""
    return urlsplit(url.split(",")[0].strip()).username or ""


def users(passwords: Mapping[str, str]) -> str:
    """The accounts of the server's configuration; `passwords` as they are written."""
    lines = [f"      {{ user: {KEEPER}, password: {passwords[KEEPER]} }}"]
    for user, subjects in PUBLISHES.items():
        heard = json.dumps([f"{inbox_of(user)}.>"])
        may = f"publish: {json.dumps(subjects)}, subscribe: {heard}"
        lines.append(
            f"      {{ user: {user}, password: {passwords[user]}, permissions: {{ {may} }} }}"
        )
    inner = "\n".join(["    jetstream: enabled", "    users: [", *lines, "    ]"])
    return f"accounts {{\n  {ACCOUNT}: {{\n{inner}\n  }}\n}}\n"
