"""What concerns bytes, once more over each durable back end with its blobs in an object store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import S3, Place

from threefold.testing import contract


@pytest.fixture(params=S3)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def open_store(backend: str, tmp_path: Path, s3: str) -> Iterator[Place]:
    place = Place(backend, tmp_path, s3)
    yield place
    place.close()


class TestBlobsInS3(contract.BlobsContract):
    pass


class TestCollectingInS3(contract.CollectingContract):
    pass


class TestRecordingInS3(contract.RecordingContract):
    pass


class TestRetentionInS3(contract.RetentionContract):
    pass
