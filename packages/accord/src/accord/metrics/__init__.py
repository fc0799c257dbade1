"""Metrics of a server: connections, sessions, turns, bytes, waits for users, refused requests.

    metrics = ServerMetrics()
    async with accord.http.serving(accord.http.MeasuredHost(agent, metrics)) as server:
        ...                                      # the server answers GET /metrics in the Prometheus text format
    metrics.export(meter)                        # and to OpenTelemetry

A measured host examines the messages of its connections, so a server without metrics pays nothing.
"""

from accord.metrics.server_metrics import ServerMetrics

__all__ = ["ServerMetrics"]
