"""The contract suites over every back end that is built in."""

from __future__ import annotations

from threefold.testing import contract


class TestRecording(contract.RecordingContract):
    pass


class TestFeedback(contract.FeedbackContract):
    pass


class TestApps(contract.AppsContract):
    pass


class TestSearch(contract.SearchContract):
    pass


class TestReading(contract.ReadingContract):
    pass


class TestCatalog(contract.CatalogContract):
    pass


class TestRetention(contract.RetentionContract):
    pass


class TestUpkeep(contract.UpkeepContract):
    pass


class TestMoving(contract.MovingContract):
    pass


class TestIsolation(contract.IsolationContract):
    pass


class TestBlobs(contract.BlobsContract):
    pass


class TestCollecting(contract.CollectingContract):
    pass


class TestRealms(contract.RealmsContract):
    pass


class TestEditions(contract.EditionsContract):
    pass
