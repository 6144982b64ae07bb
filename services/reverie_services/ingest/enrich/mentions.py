"""Links memories to the files and entities that they mention, by rules and by a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from reverie.domain.access.scopes import project_of_scope
from reverie.domain.entities.file_paths import build_anchor_metadata, extract_paths, is_same_file
from reverie.domain.entities.recognition import extract_entities
from reverie.inference.llm_endpoint import LanguageModelError
from reverie.inference.llm_prompts import get_prompt
from reverie.store.memories.enrichment import EnrichableMemory, MemoryMentions
from reverie_services.ingest.dependencies import DerivationDependencies, EnrichmentDependencies
from reverie_services.ingest.enrich.derivation_timeout import derive_in_thread
from reverie_services.ingest.enrich.llm_causes import LLM_RULE_PREFIX
from reverie_services.ingest.enrich.llm_entities import find_entities, may_have_unfound_names

MAX_ANCHORS = 50

Origins = Mapping[str, Mapping[str, object]]
"""What the edges to entities say of their origin, by label."""


async def extract_all_mentions(memories: Sequence[EnrichableMemory]) -> list[MemoryMentions]:
    """What each memory mentions, by rules; nothing of imported memories."""
    return [
        MemoryMentions(memory, (), ())
        if memory.carried
        else await derive_in_thread(
            memory.id,
            "mentions",
            partial(_extract_mentions, memory),
            MemoryMentions(memory, (), ()),
        )
        for memory in memories
    ]


async def link_mentions(
    deps: DerivationDependencies,
    tenant: int,
    mentions: Sequence[MemoryMentions],
    origins: Mapping[UUID, Origins],
) -> list[dict[UUID, dict[str, Any]]]:
    """Finds or creates the nodes that each memory mentions; returns them with the edge metadata."""
    nodes_by_memory = await deps.enrichment.ensure_nodes(tenant, mentions)
    return [
        {
            node: {"named": label, **origins.get(found.memory.id, {}).get(label, {})}
            for label, node in nodes.entities.items()
        }
        | {
            node: build_anchor_metadata(path, found.memory.git or {})
            for path, node in nodes.files.items()
        }
        for found, nodes in zip(mentions, nodes_by_memory, strict=True)
    ]


async def add_llm_entities(
    deps: EnrichmentDependencies, tenant: int, mentions: MemoryMentions
) -> tuple[MemoryMentions, Origins]:
    """Adds what the language model found beside the rules, and where each of it comes from."""
    model, memory = deps.language_model, mentions.memory
    if model is None or not may_have_unfound_names(mentions):
        return mentions, {}
    redactor = (await deps.load_redactor(tenant)).within(memory.scope)
    try:
        entities = await find_entities(model, tenant, redactor, memory.content)
    except LanguageModelError:
        return mentions, {}
    known = {entity.label for entity in mentions.entities}
    found = [entity for entity in entities if entity.label not in known]
    rule = f"{LLM_RULE_PREFIX} {get_prompt('names').label} {model.name}"
    # The edge stays as long as the memory has this version, whatever rules find.
    origin = {"rule": rule, "memory_version": memory.version}
    return (
        replace(mentions, entities=[*mentions.entities, *found]),
        {entity.label: origin for entity in found},
    )


def _extract_mentions(memory: EnrichableMemory) -> MemoryMentions:
    """Extracts the files and entities that a memory mentions.

    Each file is listed once, under its first name: names from the client precede names in the text.
    """
    git, files = memory.git or {}, list[str]()
    if project_of_scope(memory.scope):
        located_paths = [path for name in ("lines", "symbols") for path in git.get(name, {})]
        for path in (*git.get("files", ()), *located_paths, *extract_paths(memory.searched_text)):
            if not any(path == other or is_same_file(path, other) for other in files):
                files.append(path)
    entities = extract_entities(memory.searched_text)
    return MemoryMentions(memory, files[:MAX_ANCHORS], entities[:MAX_ANCHORS])
