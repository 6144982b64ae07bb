"""The pages of the console. The order of the modules is that of the menu."""

# ruff: noqa: I001
from reverie_services.console.pages import overview as overview
from reverie_services.console.pages import ask as ask
from reverie_services.console.pages import recalls as recalls
from reverie_services.console.pages import memories as memories
from reverie_services.console.pages import graph as graph
from reverie_services.console.pages import sessions as sessions
from reverie_services.console.pages import chat as chat
from reverie_services.console.pages import dreams as dreams
from reverie_services.console.pages import stale as stale
from reverie_services.console.pages import lists as lists
from reverie_services.console.pages import settings as settings
from reverie_services.console.pages.registry import PAGES as PAGES
from reverie_services.console.pages.registry import find_page as find_page
