"""Imported first: has pytest explain the assertions of the modules beside this one, as it does in test files."""

import pytest

pytest.register_assert_rewrite(
    *(
        f"threefold.testing.contract.{name}"
        for name in (
            "blobs", "catalog", "collecting", "desk", "editions", "feedback", "isolation", "moving", "reading",
            "realms", "recording", "retention", "search", "suite", "upkeep",
        )
    )
)  # fmt: skip
