"""`manage.py replay_stream FILE --provider NAME`: a captured upstream answer as its client would read it."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.captured import ANYTHING, client_stream
from translation.errors import BridgeError
from translation.providers.profiles import PROFILES


class Command(BaseCommand):
    help = "Run a captured upstream answer (SSE or JSON) through the translator and print the client's stream."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the upstream's answer, raw: a stream or whole JSON")
        parser.add_argument("--provider", required=True, choices=sorted(PROFILES), help="whose dialect it is")
        parser.add_argument("--request", type=Path, help="the client's request (Messages API, JSON), for its tools")
        parser.add_argument("--model", default="", help="the upstream's model; default: the request's")

    def handle(self, *args: object, file: Path, provider: str, request: Path | None, model: str, **_: object) -> None:
        try:
            body = request.read_bytes() if request else ANYTHING
            stream = client_stream(file.read_bytes(), provider, body, model)
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        except BridgeError as error:
            raise CommandError(error.message) from error
        self.stdout.write(stream.decode("utf-8", "replace"), ending="")
