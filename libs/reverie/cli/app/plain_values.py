"""Converts simple command-line values without pydantic, which is slow to import."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, get_args, get_origin

from typer.core import TyperArgument, TyperOption

NEEDS_VALIDATION: Any = object()


class PlainValueParser:
    """What makes the value of a parameter, and asks `checks` for one where it is unclear."""

    def __init__(self, checks: Callable[[], Any]) -> None:
        self._checks = checks

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command takes it. Raises what typer raises."""
        descriptor = param.type_descriptor
        is_multiple = param.multiple or param.nargs != 1
        result = (
            _convert_all(value, descriptor)
            if is_multiple
            else _convert(value, descriptor.annotation, descriptor.parameter_info)
        )
        return (
            self._checks().coerce(value, param=param, ctx=ctx)
            if result is NEEDS_VALIDATION
            else result
        )


def skip_plain_validation() -> None:
    """From now on typer checks a value only where that is needed."""
    checks = TyperOption.get_runtime_param
    for kind in (TyperOption, TyperArgument):
        kind.get_runtime_param = lambda param: PlainValueParser(partial(checks, param))  # type: ignore


def _convert_all(value: Any, descriptor: Any) -> Any:
    if value is None:
        return ()
    if get_origin(descriptor.annotation) is not list or isinstance(value, str):
        return NEEDS_VALIDATION
    [kind] = get_args(descriptor.annotation)
    results = [_convert(item, kind, descriptor.parameter_info) for item in value]
    return NEEDS_VALIDATION if any(item is NEEDS_VALIDATION for item in results) else results


def _convert(value: Any, kind: Any, info: Any) -> Any:
    """A value of this kind, from itself or from its word;

    `NEEDS_VALIDATION` where it takes a check.
    """
    if value is None:
        return None
    if info.parser is not None or not isinstance(kind, type):
        return NEEDS_VALIDATION
    if issubclass(kind, Enum):
        return next(
            (member for member in kind if value in (member, member.value)), NEEDS_VALIDATION
        )
    if kind is str and isinstance(value, str):
        return value
    return _parse_integer(value, info) if kind is int else NEEDS_VALIDATION


def _parse_integer(value: Any, info: Any) -> Any:
    text = str(value)
    if not (text.isascii() and text.isdigit()) or info.clamp:
        return NEEDS_VALIDATION
    number = int(text)
    low, high = (number if bound is None else bound for bound in (info.min, info.max))
    return number if low <= number <= high else NEEDS_VALIDATION
