"""Learned facts: key, confidence, and the number of independent domains that support them."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from ipaddress import ip_address
from typing import Any

from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import InvalidInput
from reverie.domain.text.characters import word_set

CONFIDENCE_BY_LEVEL = {"high": 0.9, "medium": 0.6, "low": 0.3}
"""The confidence of a memory for each confidence level."""
HASH_CHARS = 12

# Second-level labels under which countries register names.
_SECOND_LEVEL = word_set(
    """ac asn co com edu gen go gob gouv gov govt gv id ltd mil ne net nhs nic nom or org plc
    sch school"""
)
# Hosts whose sub-domains belong to different owners.
_SHARED_HOSTS = word_set(
    """appspot.com azurewebsites.net bitbucket.io blogspot.com cloudfront.net firebaseapp.com
    fly.dev github.io gitlab.io herokuapp.com hashnode.dev netlify.app pages.dev
    readthedocs.io readthedocs.org s3.amazonaws.com substack.com tumblr.com vercel.app
    web.app wordpress.com workers.dev"""
)
_DNS_LABEL = re.compile(r"[^\W_](?:[\w-]{0,61}[^\W_])?", re.UNICODE)
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.I)
_END_PUNCTUATION = " .!?。！？"


@dataclass(frozen=True)
class LearnedFact:
    """A learned fact. `corroborations`: how many independent root domains contain it."""

    topic: str
    statement: str
    confidence: str
    corroborations: int
    domains: tuple[str, ...]
    verified: date

    @property
    def key(self) -> str:
        """`learn:<topic>:<hash of the statement>`"""
        return f"learn:{slugify(self.topic)}:{hash_statement(self.statement)}"

    @property
    def content(self) -> str:
        """The statement with its tag, so that a new verification changes the content."""
        domains = ", ".join(self.domains) or "none"
        tag = (
            f"confidence: {self.confidence}; corroborations: {self.corroborations};"
            f" domains: {domains}; verified: {self.verified.isoformat()}"
        )
        return f"{self.statement}\n\n[{tag}]"

    @property
    def metadata(self) -> dict[str, Any]:
        """The tag as data."""
        return {
            "topic": self.topic,
            "statement": self.statement,
            "confidence": self.confidence,
            "corroborations": self.corroborations,
            "domains": list(self.domains),
            "verified": self.verified.isoformat(),
        }


def build_learned_fact(
    topic: str, statement: str, confidence: str, domains: Iterable[str], verified: date
) -> LearnedFact:
    """Builds a fact with its root domains counted.

    Raises `InvalidInput` with the name of an invalid domain.
    """
    roots = sorted(
        {extract_root_domain(domain, f"domains.{index}") for index, domain in enumerate(domains)}
    )
    return LearnedFact(topic, statement, confidence, len(roots), tuple(roots), verified)


def hash_statement(statement: str) -> str:
    """Short, and the same for a statement however it is spaced, cased and ended."""
    folded = " ".join(unicodedata.normalize("NFKC", statement).casefold().split())
    return hashlib.sha256(folded.rstrip(_END_PUNCTUATION).encode()).hexdigest()[:HASH_CHARS]


def extract_root_domain(text: str, field: str = "domains") -> str:
    """Returns the registered domain: `docs.example.co.uk` and `https://example.co.uk/a` are one.

    A rule instead of the public suffix list: two labels, or three under a country's second level or
    on a shared host. Raises `InvalidInput` for invalid hosts.
    """
    host = _SCHEME.sub("", text.strip()).split("/")[0].split("?")[0].rpartition("@")[2].lower()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    else:
        host = host.partition(":")[0].rstrip(".")
    with suppress(ValueError):
        ip_address(host)
        return host
    labels = host.split(".")
    if len(labels) < 2 or len(host) > 253 or not all(map(_DNS_LABEL.fullmatch, labels)):
        raise InvalidInput(field, f"{text[:60]!r} is not a domain")
    return ".".join(labels[-_count_root_labels(labels) :])


def _count_root_labels(labels: list[str]) -> int:
    for size in (3, 2):
        if ".".join(labels[-size:]) in _SHARED_HOSTS:
            return size + 1
    return 3 if len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL else 2
