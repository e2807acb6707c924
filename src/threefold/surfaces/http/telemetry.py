"""OpenTelemetry spans of requests, where an endpoint is configured and the packages are installed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.types import Scope

from threefold.surfaces.http.metrics import method_of

ENDPOINT: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
logger = logging.getLogger("threefold.http")
Ended = Callable[[str, int], None]


class Tracing:
    """Makes a span of each request, or none: what OpenTelemetry is configured by says which."""

    def __init__(self, provider: Any = None) -> None:
        self._provider = provider
        self._tracer = None if provider is None else provider.get_tracer("threefold")

    @classmethod
    def configured(cls) -> Tracing:
        """As the environment says."""
        if not any(map(os.environ.get, ENDPOINT)):
            return cls()
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            logger.warning("no spans are sent (%s): pip install 'threefold[telemetry]'", error.name)
            return cls()
        # Not the process's own: what libraries tell of requests would be more than a route and a status.
        provider = TracerProvider(resource=Resource.create({"service.name": "threefold"}), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    @contextmanager
    def request(self, scope: Scope) -> Iterator[Ended]:
        """A span around a request; what is given is told its route and status when it ends."""
        if self._tracer is None:
            yield lambda _route, _status: None
            return
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        # The other header of the standard, `tracestate`, may say anything.
        sent = {"traceparent": Headers(scope=scope).get("traceparent", "")}
        method = method_of(scope["method"])
        parent = TraceContextTextMapPropagator().extract(sent)
        with self._tracer.start_as_current_span("HTTP", parent, SpanKind.SERVER) as span:

            def ended(route: str, status: int) -> None:
                span.update_name(f"{method} {route}")
                span.set_attributes(
                    {"http.request.method": method, "http.route": route, "http.response.status_code": status}
                )

            yield ended

    def close(self) -> None:
        """Send what is left."""
        if self._provider is not None:
            self._provider.shutdown()
