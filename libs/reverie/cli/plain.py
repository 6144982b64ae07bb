"""Words of a command line that need no checking, taken as they stand.

Typer checks every parameter with pydantic, one that was not given as well, and loading pydantic
takes longer than a whole call of the gateway. What is a text, a whole number within its bounds or
one of a few names is clear without it; all else is checked as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, get_args, get_origin

from typer.core import TyperArgument, TyperOption

UNCLEAR: Any = object()


class Plain:
    """What makes the value of a parameter, and asks `checks` for one where it is unclear."""

    def __init__(self, checks: Callable[[], Any]) -> None:
        self._checks = checks

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command takes it. Raises what typer raises."""
        told = param.type_descriptor
        many = param.multiple or param.nargs != 1
        made = _all(value, told) if many else _one(value, told.annotation, told.parameter_info)
        return self._checks().coerce(value, param=param, ctx=ctx) if made is UNCLEAR else made


def take_plain_words() -> None:
    """From now on typer checks a value only where that is needed."""
    checks = TyperOption.get_runtime_param
    for kind in (TyperOption, TyperArgument):
        kind.get_runtime_param = lambda param: Plain(partial(checks, param))  # type: ignore


def _all(value: Any, told: Any) -> Any:
    if value is None:
        return ()
    if get_origin(told.annotation) is not list or isinstance(value, str):
        return UNCLEAR
    [kind] = get_args(told.annotation)
    made = [_one(each, kind, told.parameter_info) for each in value]
    return UNCLEAR if any(each is UNCLEAR for each in made) else made


def _one(value: Any, kind: Any, info: Any) -> Any:
    """A value of this kind, from itself or from its word; `UNCLEAR` where it takes a check."""
    if value is None:
        return None
    if info.parser is not None or not isinstance(kind, type):
        return UNCLEAR
    if issubclass(kind, Enum):
        return next((each for each in kind if value in (each, each.value)), UNCLEAR)
    if kind is str and isinstance(value, str):
        return value
    return _number(value, info) if kind is int else UNCLEAR


def _number(value: Any, info: Any) -> Any:
    word = str(value)
    if not (word.isascii() and word.isdigit()) or info.clamp:
        return UNCLEAR
    number = int(word)
    low, high = (number if bound is None else bound for bound in (info.min, info.max))
    return number if low <= number <= high else UNCLEAR
