"""A memory made from texts that were stored, without what has become known as secret since."""

from __future__ import annotations

from dataclasses import replace

from reverie.domain.memory import NewMemory, content_hash
from reverie.domain.redaction import redact, redact_value
from reverie.domain.said import memory_words


def without_secrets(new: NewMemory) -> NewMemory:
    """The same memory with every text of it redacted; itself where none held a secret."""
    texts = redact_value(
        {"summary": new.summary, "tags": list(new.tags), "git": new.git, "metadata": new.metadata}
    )
    content = redact(new.content)
    if not texts.count + content.count:
        return new
    tags = tuple(dict.fromkeys(texts.value["tags"]))
    return replace(
        new,
        content=content.text,
        content_hash=content_hash(content.text),
        words=memory_words(new.key, content.text, tags),
        summary=texts.value["summary"],
        tags=tags,
        git=texts.value["git"],
        metadata=texts.value["metadata"],
    )
