"""Loads the shared fixtures for every test, and says how many examples a property is tried with."""

import os

from hypothesis import settings

pytest_plugins = ("tests.support.fixtures",)

# A seventh of Hypothesis' own number; `make fuzz` asks for many more.
EXAMPLES = max(15, int(os.environ.get("REVERIE_TEST_EXAMPLES", "0")))
# No deadline: a machine may be busy.
settings.register_profile("suite", max_examples=EXAMPLES, database=None, deadline=None)
settings.load_profile("suite")
