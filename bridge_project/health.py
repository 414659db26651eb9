"""Health endpoints: `/livez` says that the process answers, `/readyz` that it can reach its database."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse


async def livez(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "database unavailable"}, status=503, headers={"retry-after": "1"})
    return JsonResponse({"status": "ok"})
