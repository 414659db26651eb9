"""The ninja API: operations, and how each error becomes an HTTP answer."""

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI

from conversations import ids
from conversations.api import messages
from conversations.api.exchange import LeanRequest
from translation.client.render import error_body, error_headers
from translation.errors import BridgeError

api = NinjaAPI(title="Toolbridge", version="1", docs_url="/docs", openapi_url="/openapi.json", urls_namespace="bridge")
api.add_router("/v1", messages.router)


@api.exception_handler(BridgeError)
def refused(request: HttpRequest, error: BridgeError) -> HttpResponse:
    if isinstance(request, LeanRequest):
        raise error
    request_id = ids.request_id()
    headers = {"request-id": request_id, **dict(error_headers(error))}
    return HttpResponse(
        error_body(error, request_id), status=error.status, content_type="application/json", headers=headers
    )
