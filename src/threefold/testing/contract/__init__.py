"""The contract of a back end as tests that anybody can run over their own.

In a test module of yours::

    from threefold.testing.contract import *          # the classes below

    @pytest.fixture
    def open_store(tmp_path):                          # see `OpenStore`
        return MyOpenStore(tmp_path)

Each test carries `@pytest.mark.capability("…")` with one of `CAPABILITIES`; register the marker `capability(name)` in
your configuration. Tests that need a store which outlives its handles are skipped where `open_store.durable` is False.
"""

from threefold.testing.contract import _assertions  # noqa: F401 - see there
from threefold.testing.contract.blobs import BlobsContract
from threefold.testing.contract.catalog import CatalogContract
from threefold.testing.contract.collecting import CollectingContract
from threefold.testing.contract.desk import Desk, OpenStore, full_turn, make_turn
from threefold.testing.contract.editions import EditionsContract
from threefold.testing.contract.feedback import AppsContract, FeedbackContract
from threefold.testing.contract.isolation import IsolationContract
from threefold.testing.contract.moving import MovingContract
from threefold.testing.contract.reading import ReadingContract
from threefold.testing.contract.realms import RealmsContract
from threefold.testing.contract.recording import RecordingContract
from threefold.testing.contract.retention import RetentionContract
from threefold.testing.contract.search import SearchContract
from threefold.testing.contract.suite import CAPABILITIES, Contract
from threefold.testing.contract.upkeep import UpkeepContract

__all__ = [
    "CAPABILITIES",
    "AppsContract",
    "BlobsContract",
    "CatalogContract",
    "CollectingContract",
    "Contract",
    "Desk",
    "EditionsContract",
    "FeedbackContract",
    "IsolationContract",
    "MovingContract",
    "OpenStore",
    "ReadingContract",
    "RealmsContract",
    "RecordingContract",
    "RetentionContract",
    "SearchContract",
    "UpkeepContract",
    "full_turn",
    "make_turn",
]
