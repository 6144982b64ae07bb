"""Items of a store as documents, and whether an item matches a filter.

Each namespace is a collection, with each of its labels quoted.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final
from urllib.parse import quote, unquote

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from reverie.adapters.langgraph.texts import ItemMemories, name_memory
from reverie.client import AsyncReverie

Namespace = tuple[str, ...]

_STORE: Final = "langgraph/store/"


class ItemDocuments:
    """The items in a scope. `fields`: the paths of the texts that are remembered."""

    def __init__(self, reverie: AsyncReverie, scope: str | None, fields: Sequence[str]) -> None:
        self._reverie = reverie
        self._scope = scope
        self._texts = ItemMemories(reverie, scope, fields)

    async def run(self, ops: Sequence[Op]) -> list[Result]:
        """Reads first, then writes; of several writes of a key, the last one counts."""
        for op in ops:
            validate_op_namespace(op)
        results = await asyncio.gather(*(self._read(op) for op in ops))
        writes = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        await self._write(list(writes.values()))
        return list(results)

    async def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return await self._get(op)
        if isinstance(op, SearchOp):
            return await self._search(op)
        if isinstance(op, ListNamespacesOp):
            return await self._list_namespaces(op)
        return None

    async def _get(self, op: GetOp) -> Item | None:
        found = self._reverie.list_documents(
            _name(op.namespace), key=_quote(op.key), scope=self._scope
        )
        async for document in found:
            return Item(**_read_document(op.namespace, document))
        return None

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        """The items that recall finds come first; no more are read than the answer needs."""
        query = (op.query or "").strip()
        scores = await self._texts.score(op.namespace_prefix, query) if query else {}
        unseen, end = set(scores), op.offset + op.limit
        found: list[SearchItem] = []
        async for item in self._walk_items(op.namespace_prefix):
            name = name_memory(item.namespace, item.key)
            unseen.discard(name)
            if is_match(item.value, op.filter or {}):
                item.score = scores.get(name)
                found.append(item)
            if not unseen and len(found) >= end:
                break
        found.sort(key=lambda item: -1.0 if item.score is None else item.score, reverse=True)
        return found[op.offset : end]

    async def _walk_items(self, prefix: Namespace) -> AsyncIterator[SearchItem]:
        async for namespace in self._walk(prefix):
            documents = self._reverie.list_documents(_name(namespace), scope=self._scope)
            async for document in documents:
                yield SearchItem(**_read_document(namespace, document))

    async def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        prefixes = (_fixed_prefix(condition) for condition in op.match_conditions or ())
        found = {
            namespace[: op.max_depth]
            async for namespace in self._walk(max(prefixes, key=len, default=()))
            if all(_is_named(condition, namespace) for condition in op.match_conditions or ())
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    async def _walk(self, prefix: Namespace) -> AsyncIterator[Namespace]:
        """The namespaces that have items, under a prefix."""
        named = self._reverie.list_collections(prefix=_name(prefix), scope=self._scope)
        async for found in named:
            labels = found.collection.removeprefix(_STORE).rstrip("/").split("/")
            yield tuple(unquote(label) for label in labels)

    async def _write(self, ops: Sequence[PutOp]) -> None:
        """Documents come first: a memory without an item is never found by a search."""
        scope = ""
        by_namespace: dict[Namespace, list[PutOp]] = {}
        for op in ops:
            by_namespace.setdefault(op.namespace, []).append(op)
        for namespace, writes in by_namespace.items():
            name = _name(namespace)
            if gone := [_quote(op.key) for op in writes if op.value is None]:
                deleted = await self._reverie.delete_documents(name, keys=gone, scope=self._scope)
                scope = deleted.scope
            if documents := [_build_document(op) for op in writes if op.value is not None]:
                put = await self._reverie.put_documents(name, documents, scope=self._scope)
                scope = put.scope
        await self._texts.write(ops, scope)


def _build_document(op: PutOp) -> dict[str, Any]:
    document: dict[str, Any] = {"key": _quote(op.key), "value": op.value}
    if op.ttl is not None:
        document["expires_in"] = op.ttl * 60
    return document


def _read_document(namespace: Namespace, document: Any) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "key": unquote(document.key[1:]),
        "value": document.value,
        "created_at": document.created_at,
        "updated_at": document.updated_at,
    }


def _is_named(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins, or ends, with a path, of which `*` is any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    begins = condition.match_type == "prefix"
    part = namespace[: len(path)] if begins else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _fixed_prefix(condition: MatchCondition) -> Namespace:
    """The labels that every namespace begins with that a condition lets pass."""
    path = condition.path if condition.match_type == "prefix" else ()
    return tuple(takewhile(lambda label: label != "*", path))


def _name(namespace: Namespace) -> str:
    return _STORE + "".join(quote(label, safe="") + "/" for label in namespace)


def _quote(key: str) -> str:
    """A key may be empty, a document's may not."""
    return "=" + quote(key, safe="")


_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def is_match(value: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Whether each field has what the filter asks for."""
    return all(_has(value.get(name), expected) for name, expected in filters.items())


def _has(value: Any, expected: Any) -> bool:
    if isinstance(expected, Mapping):
        if any(name.startswith("$") for name in expected):
            return all(_compare(value, name, operand) for name, operand in expected.items())
        return isinstance(value, Mapping) and is_match(value, expected)
    if isinstance(expected, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(map(_has, value, expected))
        )
    return bool(value == expected)


def _compare(value: Any, name: str, operand: Any) -> bool:
    """Whether a comparison holds; never for values that are no numbers. Raises `ValueError`."""
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    if name not in _COMPARISONS:
        raise ValueError(f"Unsupported operator: {name}")
    try:
        return _COMPARISONS[name](float(value), float(operand))
    except (TypeError, ValueError):
        return False
