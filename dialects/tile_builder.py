"""The old place of `dialects/tile/builder.py`."""

from .tile.builder import *  # noqa: F403
