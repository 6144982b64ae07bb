"""Writes SVG that every renderer draws alike: colours and sizes as attributes, no style sheet."""

from __future__ import annotations

from html import escape

SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
MONO = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def element(tag: str, content: str = "", **attributes: object) -> str:
    """An element; an underscore in an attribute's name becomes a hyphen."""
    pairs = "".join(
        f' {name.replace("_", "-")}="{escape(str(value))}"' for name, value in attributes.items()
    )
    return f"<{tag}{pairs}>{content}</{tag}>" if content else f"<{tag}{pairs}/>"


def text(content: str, x: float, y: float, size: float, fill: str, **attributes: object) -> str:
    """A line of text whose baseline begins at x and y."""
    return element("text", escape(content), x=x, y=y, font_size=size, fill=fill, **attributes)


def document(width: int, height: int, title: str, font: str, body: list[str]) -> str:
    """A whole picture; the title is what a screen reader says."""
    content = "\n".join(["", element("title", escape(title)), *body, ""])
    return (
        element(
            "svg",
            content,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width} {height}",
            role="img",
            font_family=font,
        )
        + "\n"
    )
