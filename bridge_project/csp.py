"""The Content-Security-Policy of each answer."""

from csp.middleware import CSPMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class ContentSecurityPolicy(CSPMiddleware):
    """django-unfold's Alpine.js evaluates expressions: only the admin gets the permission it needs for that, and no
    page of the admin may hold a script of its own."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path.startswith("/admin/") and not hasattr(response, "_csp_replace"):
            response._csp_replace = {"script-src": ["'self'", "'unsafe-eval'"]}  # type: ignore[attr-defined]  # csp's own hook
        return super().process_response(request, response)
