"""Generated memories, questions and conversations, the same on every run."""

from __future__ import annotations

import random
from typing import Any

PARTS = (
    "cart",
    "checkout",
    "invoice",
    "mailer",
    "search",
    "index",
    "session",
    "cache",
    "queue",
    "worker",
    "login",
    "report",
)
DEEDS = (
    "retries",
    "rounds",
    "caches",
    "drops",
    "sorts",
    "locks",
    "signs",
    "merges",
    "streams",
    "parses",
    "trims",
    "logs",
)
WHYS = (
    "a retry sent the same order twice",
    "floats lost a cent now and then",
    "the index was rebuilt on every call",
    "two workers took the same job",
    "the token ran out in the middle of an upload",
    "customers in another time zone saw yesterday's prices",
    "the lock was held while a model worked",
    "the old client did not know the new field",
)
HOWS = (
    "we key the write by its request",
    "amounts are kept in whole cents",
    "the result is kept for ten minutes",
    "a lease with an epoch guards it",
    "it is renewed before it runs out",
    "everything is stored in UTC",
    "nothing is held across a call",
    "unknown fields are passed over",
)


def memory(number: int) -> str:
    """One memory of some thirty words; no two numbers give the same."""
    chance = random.Random(number)
    one, other = chance.sample(PARTS, 2)
    return (
        f"Decision {number}: the {one} {chance.choice(DEEDS)} what the {other} gives it, "
        f"because {chance.choice(WHYS)}. From now on {chance.choice(HOWS)}, and "
        f"src/{one}/{other}_{number % 97}.py says so in its first lines."
    )


def question(number: int) -> str:
    """One question; no two numbers give the same, so no vector is known before."""
    chance = random.Random(-number - 1)
    one, other = chance.sample(PARTS, 2)
    return f"What did we decide about the {one} and the {other} in case {number}, and why?"


def conversation(number: int, turns: int) -> list[dict[str, Any]]:
    """Turns by turns of a developer and an agent."""
    asked = [
        {"role": "user", "content": f"{question(number * 1000 + place)} Please look into it."}
        if place % 2 == 0
        else {"role": "assistant", "content": f"I found it. {memory(number * 1000 + place)}"}
        for place in range(turns)
    ]
    return [turn | {"external_id": f"{number}-{place}"} for place, turn in enumerate(asked)]
