"""The table of pages: each has a path, a template, and a function that loads what it shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.page_request import PageRequest, PageValues

LoadPage = Callable[[PageRequest], Awaitable[PageValues | OutgoingResponse]]


@dataclass(frozen=True)
class Page:
    """A page. `path` has its variables in braces; `section` is the path of its menu entry."""

    path: str
    template: str
    section: str
    load: LoadPage

    def match(self, path: str) -> dict[str, str] | None:
        """The variables of the path, if it is one of this page."""
        names, values = self.path.split("/"), path.split("/")
        if len(names) != len(values):
            return None
        pairs = list(zip(names, values, strict=True))
        if any(name != value for name, value in pairs if name[:1] != "{"):
            return None
        found = {name[1:-1]: value for name, value in pairs if name[:1] == "{"}
        return found if all(found.values()) else None


@dataclass(frozen=True)
class Section:
    """An entry of the menu: the page's path and its title. `group` is the heading above it."""

    path: str
    title: str
    group: str = ""


@dataclass
class PageTable:
    """All pages and the menu, in the order in which they are added."""

    pages: list[Page] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def add(
        self, path: str, template: str, title: str | None = None, group: str = "", of: str = ""
    ) -> Callable[[LoadPage], LoadPage]:
        """Adds a page. With a `title` it is in the menu; else it belongs to the entry `of`."""

        def add(load: LoadPage) -> LoadPage:
            self.pages.append(Page(path, template, of or path, load))
            if title is not None:
                self.sections.append(Section(path, title, group))
            return load

        return add


PAGES = PageTable()


def find_page(path: str) -> tuple[Page, dict[str, str]] | None:
    """The page of a path, and the variables in it."""
    for page in PAGES.pages:
        if (values := page.match(path)) is not None:
            return page, values
    return None
