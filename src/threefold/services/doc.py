"""Documents as a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from msgspec import Meta

from threefold.model.ref import ObjectRef
from threefold.model.resolved import Resolved, Shown, cut
from threefold.services.calls import Caller, operation
from threefold.services.realms import SIZE, Limit, Next, Query, RealmService, Size, after_of, next_of
from threefold.services.service import Ref, Service

Tokens = Annotated[Annotated[int, Meta(ge=1)] | None, "how long it may be"]
Named = Annotated[str, "the document's id, or its source"]
Filter = Annotated[dict[str, Any] | None, 'what must hold of the metadata, such as {"year": {"gte": 2020}}']
From = Annotated[list[str] | None, "only documents from these sources"]


class Found(TypedDict):
    """Chunks that answer, best first."""

    chunks: list[dict[str, Any]]
    mode: str
    warnings: list[str]


class Page(TypedDict):
    """Documents in a list; `next` is there where more may follow."""

    documents: list[dict[str, Any]]
    next: str | None


class Chunks(TypedDict):
    """Chunks in the order of the text; `next` is there where more follow."""

    chunks: list[dict[str, Any]]
    total: int
    next: int | None


class DocService(RealmService, Service):
    """What documents say."""

    namespace = "doc"
    line = "Documents, cut into chunks that are found and cited"
    about = (
        "The user's own documents, those of the tenant and those of everyone. Search gives passages with their source, "
        "heading path, page and position; taking a source in again replaces what changed."
    )
    kinds: ClassVar[Mapping[str, str]] = {
        "document": "a document, doc:<id>",
        "chunk": "a passage of one, doc:<id>#<chunk>",
    }

    def resolve(self, caller: Caller, ref: Ref) -> Resolved:
        """See `Service.resolve`."""
        return self._doc(caller).resolve(str(ref))

    def show(self, caller: Caller, refs: Sequence[Ref], size: int) -> Mapping[str, Shown]:
        """See `Service.show`."""
        return self._doc(caller).show([ref for ref in refs if isinstance(ref, ObjectRef)], size)

    @operation()
    def search(
        self,
        caller: Caller,
        query: Query,
        limit: Limit = 5,
        filter: Filter = None,
        sources: From = None,
        explain: Annotated[bool, "show how each score came about"] = False,
    ) -> Found:
        """Find the passages that answer a question, the best first."""
        found = self._doc(caller).retrieve(query, limit, filter, sources, explain)
        chunks = [each.as_json() for each in found]
        return {"chunks": chunks, "mode": found.mode, "warnings": list(found.warnings)}

    @operation()
    def context(
        self,
        caller: Caller,
        query: Query,
        limit: Limit = 5,
        max_tokens: Tokens = None,
        filter: Filter = None,
    ) -> dict[str, Any]:
        """Get what answers a question as one text for a prompt: passages, quoted, each with where it is from."""
        return {"text": self._doc(caller).get_context(query, limit, max_tokens, filter)}

    @operation()
    def list(
        self,
        caller: Caller,
        limit: Limit = 20,
        cursor: Next = None,
        shared: Annotated[bool, "those of the tenant and of everyone too"] = False,
    ) -> Page:
        """List documents, those last changed first."""
        found = self._doc(caller).list(limit, after_of(cursor), shared)
        return {"documents": [{**each.as_json(), "ref": each.ref} for each in found], "next": next_of(found, limit)}

    @operation()
    def get(
        self,
        caller: Caller,
        id: Named,
        size: Size = SIZE,
        start: Annotated[int, "the character from which on its text is given"] = 0,
    ) -> dict[str, Any]:
        """Get one document: what is known of it, and its text, or the part from `start` on."""
        doc = self._doc(caller)
        document = doc.get(id.removeprefix("doc:"))
        text = doc.text(document.id)
        rest = text[max(0, start) :]
        return {**document.as_json(), "ref": document.ref, "text": cut(rest, size), "cut": len(rest) > size}

    @operation()
    def chunks(
        self,
        caller: Caller,
        id: Named,
        start: Annotated[int, Meta(ge=0, description="the number of the first one, from 0")] = 0,
        limit: Limit = 50,
    ) -> Chunks:
        """List the chunks of a document in order, each with its place in the text; `next` is the `start` of more."""
        found = self._doc(caller).chunks(id.removeprefix("doc:"))
        until = start + limit
        chunks = [each.as_json() for each in found[start:until]]
        return {"chunks": chunks, "total": len(found), "next": until if until < len(found) else None}

    @operation()
    def stats(self, caller: Caller) -> dict[str, Any]:
        """Get how much there is of the user's documents."""
        return self._doc(caller).stats().as_json()

    @operation("write", idempotent=True)
    def upsert(
        self,
        caller: Caller,
        text: Annotated[str, "the document: Markdown or plain text"],
        source: Annotated[str, "where it comes from, such as a URL: what makes it the same document"],
        metadata: Annotated[dict[str, Any] | None, "what it can be filtered by"] = None,
        title: Annotated[str | None, "by default what the document says"] = None,
        strategy: Annotated[Literal["recursive", "paragraph", "sentence", "fixed"], "how it is cut"] = "recursive",
        chunk_tokens: Annotated[int, Meta(ge=16, le=8192, description="the most tokens of a chunk")] = 512,
        overlap: Annotated[int, Meta(ge=0, description="tokens before its own that a chunk is given too")] = 50,
    ) -> dict[str, Any]:
        """Take a document in, or in place of the one from the same source; nothing is done where it says the same."""
        done = self._doc(caller).ingest(text, source, metadata, strategy, chunk_tokens, overlap, title, "text/markdown")
        return done.as_json()

    @operation("write", destructive=True, idempotent=True)
    def delete(self, caller: Caller, id: Named) -> dict[str, Any]:
        """Remove a document from every file of the store, for good."""
        return self._doc(caller).remove(id.removeprefix("doc:")).as_json()
