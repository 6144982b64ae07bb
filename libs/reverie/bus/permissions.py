"""NATS users and the subjects that each service may publish to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from reverie.bus.streams import (
    DREAM_WORKERS,
    ENGINE_WORKERS,
    STALENESS_CHANGES,
    ConsumerSpec,
)
from reverie.bus.users import ADMIN_USER

ACCOUNT = "REVERIE"
"""The account of all services. Other accounts see none of its streams or messages."""


def _consumer_subjects(spec: ConsumerSpec) -> list[str]:
    """Subjects needed to read one durable consumer."""
    consumer_path = f"{spec.stream}.{spec.name}"
    return [
        f"$JS.API.CONSUMER.INFO.{consumer_path}",
        f"$JS.API.CONSUMER.MSG.NEXT.{consumer_path}",
        f"$JS.ACK.{consumer_path}.>",
        f"$JS.API.STREAM.INFO.{spec.stream}",
        f"dead.{spec.stream}.>",
    ]


_EVENT_SUBJECTS = ["memory.*.>", "dream.*.*.requested"]
PUBLISH_PERMISSIONS: Mapping[str, list[str]] = {
    # Relays every outbox, replays dead letters, and erases deleted data. Where one process runs
    # all services, this is its user.
    "ingest": [
        *_EVENT_SUBJECTS,
        *("git.*.*.changed", "turn.*.*.requested", "engine.*.*.event", "dead.>"),
        *("$JS.API.>", "$JS.ACK.>"),
    ],
    "dream": [*_EVENT_SUBJECTS, *_consumer_subjects(DREAM_WORKERS)],
    "staleness": [*_EVENT_SUBJECTS, "git.*.*.changed", *_consumer_subjects(STALENESS_CHANGES)],
    # Watches its own events, each watcher by a consumer that the server forgets with it.
    "engine": [
        *("turn.*.*.requested", "engine.*.*.event"),
        *_consumer_subjects(ENGINE_WORKERS),
        *("$JS.API.STREAM.INFO.ENGINE", "$JS.API.CONSUMER.CREATE.ENGINE.>"),
        *("$JS.API.CONSUMER.MSG.NEXT.ENGINE.>", "$JS.API.CONSUMER.DELETE.ENGINE.>"),
    ],
}
"""Subjects that each service may publish, by its user; recall needs no bus."""


def inbox_prefix(user: str) -> str:
    """The prefix of a user's inboxes; that of NATS itself for one without a limit."""
    return f"_INBOX_{user}" if user in PUBLISH_PERMISSIONS else "_INBOX"


def user_from_url(url: str) -> str:
    """The user that an address names, if any."""
    return urlsplit(url.split(",")[0].strip()).username or ""


def render_accounts(passwords: Mapping[str, str]) -> str:
    """The accounts of the server's configuration; `passwords` as they are written."""
    lines = [f"      {{ user: {ADMIN_USER}, password: {passwords[ADMIN_USER]} }}"]
    for user, subjects in PUBLISH_PERMISSIONS.items():
        subscriptions = json.dumps([f"{inbox_prefix(user)}.>"])
        permissions = f"publish: {json.dumps(subjects)}, subscribe: {subscriptions}"
        lines.append(
            f"      "
            f"{{ user: {user}, password: {passwords[user]}, permissions: {{ {permissions} }} }}"
        )
    account_body = "\n".join(["    jetstream: enabled", "    users: [", *lines, "    ]"])
    return f"accounts {{\n  {ACCOUNT}: {{\n{account_body}\n  }}\n}}\n"
