"""Makes the rich console that every command prints through. Rich is slow: it is loaded late."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from reverie.domain.text.control_characters import strip_control_characters


class SafeConsole(Console):
    """A console that prints no control character but its own.

    Memories, turns, names and errors come from repositories, pages and other agents. Rich passes
    their escape sequences on, which can set the clipboard or rewrite what is on the screen.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of any text, table or live display; all that is printed passes here."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else strip_control_characters(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)
