"""One web process: uvicorn on the supervisor's socket, or by itself on HOST and PORT.

`--announce` makes it the first of a start: it prepares the database and says when it serves.
"""

import argparse
import asyncio
import ctypes
import os
import resource
import socket
import sys
from collections.abc import Sequence

import django
import uvicorn
from django.core.exceptions import ImproperlyConfigured

from bridge_project.up import announcement
from bridge_project.up.claims import claim_port
from bridge_project.up.errors import StartError
from bridge_project.up.requests import Requests

GRACE_SECONDS = 20
# libuv takes one connection from each listening socket in a turn of the loop: of many that come at once to a busy
# process, the last would wait for seconds.
ACCEPTS = 16
# glibc's M_ARENA_MAX. Django's pages run in threads of their own; each would leave the memory that it used to a heap of
# its own, sixteen of them on two cores, and the process would grow by all of them.
ARENA_MAX, ARENAS = -8, 2


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bridge_project.up.web", description=__doc__)
    for name in ("socket", "lifeline", "announce"):
        parser.add_argument(f"--{name}", type=int, help="an inherited descriptor")
    options = parser.parse_args(arguments)
    try:
        serve(options.socket, options.lifeline, options.announce)
    except (ImproperlyConfigured, StartError) as error:
        sys.stderr.write(f"toolbridge: {error}\n")
        return 1
    return 0


def serve(listener: int | None, lifeline: int | None, announce: int | None) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what is in memory must not lie in a file after a crash
    _share_memory()
    django.setup()
    first_run = _prepare() if announce is not None else announcement.FirstRun()
    web = Web(lifeline, announce, announcement.encode(first_run))
    web.run(listeners(_listener() if listener is None else socket.socket(fileno=listener)))


class Web(uvicorn.Server):
    def __init__(self, lifeline: int | None, announce: int | None, announced: bytes) -> None:
        super().__init__(
            uvicorn.Config(
                "bridge_project.asgi:application",
                loop="uvloop",
                http=Requests,
                ws="bridge_project.up.sockets:Sockets",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                # Longer than a load balancer's usual minute: the side that reuses a connection must not be the last
                # to know that it is closed.
                timeout_keep_alive=75,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._lifeline = lifeline
        self._announce = announce
        self._announced = announced

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._lifeline is not None:
            asyncio.get_running_loop().add_reader(self._lifeline, self._supervisor_died)
        if self._announce is not None:
            os.write(self._announce, self._announced)
            os.close(self._announce)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        from conversations import process  # noqa: PLC0415 - it has models, which need the set-up

        # Streams that outlive the grace period would be cut without a word.
        process.current().wind_down(GRACE_SECONDS - 3)
        await super().shutdown(sockets)

    def _supervisor_died(self) -> None:
        asyncio.get_running_loop().remove_reader(self._lifeline or 0)
        self.should_exit = True


def listeners(port: socket.socket) -> list[socket.socket]:
    """The same socket many times. `socket.dup` would make it a blocking one for every process that has it."""
    return [port, *(socket.socket(fileno=os.dup(port.fileno())) for _ in range(ACCEPTS - 1))]


def _share_memory() -> None:
    """Threads take their memory from few heaps, where the C library lets one say so."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(ARENA_MAX, ARENAS)


def _prepare() -> announcement.FirstRun:
    from bridge_project.up.preparation import prepare  # noqa: PLC0415 - it has models, which need the set-up

    return prepare()


def _listener() -> socket.socket:
    from bridge_project import settings  # noqa: PLC0415 - reading them may fail, and main() reports it

    return claim_port(settings.HOST, settings.PORT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
