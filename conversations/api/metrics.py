"""`GET /metrics`: free from this machine, with BRIDGE_METRICS_TOKEN from anywhere."""

import hmac
from ipaddress import ip_address

from django.http import HttpRequest, HttpResponse

from conversations import metrics
from conversations.process import current

TEXT = "text/plain; version=0.0.4; charset=utf-8"


def view(request: HttpRequest) -> HttpResponse:
    process = current()
    if not (_is_near(request) or _has_token(request, process.conf.metrics_token)):
        return HttpResponse("a bearer token is needed: BRIDGE_METRICS_TOKEN\n", status=401, content_type="text/plain")
    bridge = process.bridge
    own = process.figures()
    own.gauges["toolbridge_tasks",] = process.tasks
    total = metrics.collect(own, bridge.settings.process if bridge else 0)
    return HttpResponse(metrics.exposition(total), content_type=TEXT)


def _is_near(request: HttpRequest) -> bool:
    """From this machine itself, not from a proxy on it that speaks for somebody else."""
    if any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP")):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _has_token(request: HttpRequest, token: str | None) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return (
        bool(token) and scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), str(token).encode())
    )
