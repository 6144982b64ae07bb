"""Where in a body an error lies: rules name what they judged, doors know where it stood."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from reverie.domain.errors import Invalid, ReverieError, TooLarge


@contextmanager
def naming(field: str) -> Iterator[None]:
    """Inside it, what is `Invalid` is so of `field`, whatever name the rule gave it."""
    try:
        yield
    except Invalid as error:
        raise Invalid(field, error.reason) from None


def below(place: str, error: ReverieError) -> ReverieError:
    """The same error of a field below `place`, as `items.3`; one of no field stays as it is."""
    if isinstance(error, Invalid | TooLarge):
        return replace(error, field=f"{place}.{error.field}")
    return error
