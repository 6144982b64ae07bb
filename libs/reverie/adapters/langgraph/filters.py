"""Filters of a store's search: values, parts of values, and comparisons of numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

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
