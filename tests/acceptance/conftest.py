"""Tests of one model run in one process, so that what it compiled serves all of them."""

import pytest
from acceptance.trained import SUBJECTS
from acceptance.zoo import MODELS


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups by the parameter `name`; tests of the recogniser that have none name it."""
    for item in items:
        if isinstance(item, pytest.Function) and "acceptance" in item.path.parts:
            params = item.callspec.params if hasattr(item, "callspec") else {}
            name = "ocr" if "picture" in item.name or "recogniser" in item.name else params.get("name")
            if name in MODELS or name in SUBJECTS:
                item.add_marker(pytest.mark.xdist_group(str(name)))
