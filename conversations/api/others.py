"""What clients call beside the API: they look whether somebody is there, and report on themselves."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe


@require_safe
def root(request: HttpRequest) -> HttpResponse:
    """A client that knocks is answered; a person is led to the pages for people."""
    return HttpResponse() if request.method == "HEAD" else HttpResponseRedirect(reverse("admin:index"))


@csrf_exempt
@require_POST
def event_logging(request: HttpRequest) -> JsonResponse:
    """Claude Code's reports about itself: taken, and not kept."""
    return JsonResponse({})


@require_safe
def hello(request: HttpRequest) -> JsonResponse:
    """Claude Code asks this when it starts, to know whether it can reach the API at all."""
    return JsonResponse({"message": "hello"})
