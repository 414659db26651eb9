"""Static files, found by WhiteNoise."""

from contextlib import closing

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFiles(WhiteNoiseMiddleware):
    """Reads a file whole: WhiteNoise streams it synchronously, of which Django warns under ASGI."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        with closing(WhiteNoiseMiddleware.serve(static_file, request)) as streamed:
            return HttpResponse(b"".join(streamed), status=streamed.status_code, headers=dict(streamed.items()))
