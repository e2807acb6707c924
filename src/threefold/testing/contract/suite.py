"""What every class of the contract shares: its capabilities and the desk at which a store is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from threefold.testing.contract.desk import Desk, OpenStore

NOT_APPLICABLE = "not applicable"

CAPABILITIES = (
    "recording.whole",
    "recording.idempotent",
    "recording.supersede",
    "recording.supersede-files",
    "recording.atomic",
    "recording.order",
    "recording.missing-bytes",
    "recording.any-text",
    "recording.threads",
    "recording.durable",
    "feedback",
    "apps",
    "search.lexical",
    "search.misspelt",
    "search.semantic",
    "search.filters",
    "search.filters-before-cut",
    "search.literal",
    "search.scripts",
    "search.told",
    "search.prefixes-of-lists",
    "search.cjk-two-chars",
    "search.depth",
    "search.rows",
    "catalog.ordinals",
    "catalog.window",
    "catalog.paging",
    "catalog.about",
    "timeline",
    "timeline.paging",
    "retention.expiry",
    "retention.purge-turn",
    "retention.purge-conversation",
    "retention.purge-user",
    "retention.purge-tenant",
    "retention.purge-app",
    "retention.tombstones",
    "retention.receipt",
    "retention.files",
    "upkeep.claims",
    "upkeep.failures",
    "upkeep.stale-claims",
    "upkeep.reembed",
    "upkeep.other-model",
    "upkeep.scopes",
    "upkeep.labelled",
    "upkeep.state",
    "upkeep.reindex",
    "upkeep.scrub",
    "upkeep.close",
    "move.keys",
    "move.turns",
    "move.search",
    "move.vectors",
    "move.idempotent",
    "move.conflict",
    "move.positions",
    "move.titles",
    "move.tombstones",
    "move.reads-only",
    "isolation",
    "isolation.reads-make-nothing",
    "realms",
    "labels",
    "changing",
    "changing.rows",
    "records",
    "mem.records",
    "mem.again",
    "mem.layers",
    "mem.recall",
    "mem.proposals",
    "mem.policy",
    "mem.changing",
    "mem.deletion",
    "mem.hotset",
    "mem.shared",
    "mem.isolation",
    "mem.visibility",
    "mem.decay",
    "mem.input",
    "mem.portable",
    "mem.import",
    "mem.mirror",
    "mem.reconcile",
    "thread.window",
    "thread.summary",
    "thread.archive",
    "thread.isolation",
    "thread.deletion",
    "thread.portable",
    "doc.ingest",
    "doc.again",
    "doc.retrieve",
    "doc.filters",
    "doc.context",
    "doc.remove",
    "doc.isolation",
    "doc.shared",
    "doc.references",
    "doc.redaction",
    "doc.folders",
    "doc.input",
    "doc.portable",
    "cnv.create",
    "cnv.pin",
    "cnv.layout",
    "cnv.suggestions",
    "cnv.bin",
    "cnv.look",
    "cnv.revisions",
    "cnv.merge",
    "cnv.batch",
    "cnv.search",
    "cnv.render",
    "cnv.attach",
    "cnv.isolation",
    "cnv.input",
    "cnv.redaction",
    "cnv.purge",
    "cnv.portable",
    "access.tokens",
    "access.requests",
    "redaction",
    "context",
    "context.engines",
    "kernel",
    "door.submit",
    "door.fold",
    "door.steer",
    "door.cancel",
    "door.keys",
    "door.limits",
    "door.durable",
    "door.events",
    "door.replay",
    "door.isolation",
    "door.forget",
    "door.redaction",
    "references",
    "services",
    "services.grants",
    "services.input",
    "services.isolation",
    "services.output",
    "services.publish",
    "blobs.immutable",
    "blobs.owners",
    "blobs.delete",
    "blobs.threads",
    "blobs.refresh",
    "blobs.collect",
    "blobs.in-flight",
    "blobs.link",
)


class Contract:
    """Base of the suites: gives each test a desk over a fresh store, closed afterwards."""

    @pytest.fixture
    def desk(self, open_store: OpenStore) -> Iterator[Desk]:
        """A fresh store."""
        desk = Desk(*open_store())
        yield desk
        desk.close()

    @pytest.fixture
    def reopen(self, open_store: OpenStore) -> Callable[[Desk], Desk]:
        """Close a desk and open its store again; skips the test where the store does not outlive its handles."""
        if not open_store.durable:
            pytest.skip(f"{NOT_APPLICABLE}: nothing outlives the process here")

        def again(desk: Desk) -> Desk:
            desk.close()
            desk.backend, desk.blobs = open_store()
            return desk

        return again
