"""The text of an SVG, and the line of a picture in a memory's content. Pure."""

from __future__ import annotations

import pytest

from reverie.domain.core.errors import InvalidInput
from reverie.domain.formats.pictures import MAX_TAGS, detect_media_type, extract_svg_text

DEPTH = 5_000


def test_nested_texts_of_an_svg_are_each_taken_once() -> None:
    inner = b"<svg><g><text>Cart <desc>of the shop</desc></text></g><title>Flow</title></svg>"
    assert extract_svg_text(inner) == "Cart of the shop Flow"
    nested = b"<desc>x" * DEPTH + b"</desc>" * DEPTH
    assert extract_svg_text(b"<svg>" + nested + b"</svg>") == "x" * DEPTH


def test_an_svg_of_very_many_tags_is_refused() -> None:
    large = b"<svg>" + b"<g/>" * (MAX_TAGS - 2) + b"</svg>"
    assert detect_media_type(large) == "image/svg+xml"
    with pytest.raises(InvalidInput, match="more than"):
        detect_media_type(large.replace(b"</svg>", b"<g/></svg>"))
