"""What every test may rely on: hypothesis without a deadline, since the first example may compile code."""

import os

from hypothesis import settings

settings.register_profile("stepwell", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("stepwell")
