"""One web process: uvicorn on the supervisor's socket, or by itself on HOST and PORT.

`--announce` makes it the first of a start: it prepares the database and says when it serves.
"""

import argparse
import asyncio
import ctypes
import faulthandler
import gc
import importlib
import os
import resource
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import django
import uvicorn
from django.core.exceptions import ImproperlyConfigured

from bridge_project.up import announcement
from bridge_project.up.accepting import Acceptor
from bridge_project.up.board import Board
from bridge_project.up.claims import claim_port
from bridge_project.up.errors import StartError
from bridge_project.up.requests import Requests

GRACE_SECONDS = 20
# glibc's M_ARENA_MAX. Django's pages run in threads of their own; each would leave the memory that it used to a heap of
# its own, sixteen of them on two cores, and the process would grow by all of them.
ARENA_MAX, ARENAS = -8, 2


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bridge_project.up.web", description=__doc__)
    for name in ("socket", "lifeline", "board", "announce"):
        parser.add_argument(f"--{name}", type=int, help="an inherited descriptor")
    options = parser.parse_args(arguments)
    try:
        serve(options.socket, options.lifeline, options.board, options.announce)
    except (ImproperlyConfigured, StartError) as error:
        sys.stderr.write(f"toolbridge: {error}\n")
        return 1
    return 0


def serve(
    listener: int | None = None, lifeline: int | None = None, board: int | None = None, announce: int | None = None
) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # what is in memory must not lie in a file after a crash
    faulthandler.enable()  # where it stood, when it crashes, or is ended because it hangs
    _share_memory()
    _load()
    first_run = _prepare() if announce is not None else announcement.FirstRun()
    web = Web(lifeline, None if board is None else Board(board), announce, announcement.encode(first_run))
    web.run([_listener() if listener is None else socket.socket(fileno=listener)])


class Web(uvicorn.Server):
    def __init__(self, lifeline: int | None, board: Board | None, announce: int | None, announced: bytes) -> None:
        super().__init__(
            uvicorn.Config(
                "bridge_project.asgi:application",
                loop="uvloop",
                http=Requests,
                ws="bridge_project.up.sockets:Sockets",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,  # the application reads them where they count
                server_header=False,
                # Longer than a load balancer's usual minute: the side that reuses a connection must not be the last
                # to know that it is closed.
                timeout_keep_alive=75,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._lifeline = lifeline
        self._board = board
        self._acceptor: Acceptor | None = None
        self._announce = announce
        self._announced = announced

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        assert sockets is not None
        connections, state = self.server_state.connections, self.lifespan.state
        factory = partial(Requests, config=self.config, server_state=self.server_state, app_state=state)
        self._acceptor = Acceptor(sockets[0], factory, connections, self._board)
        if self._lifeline is not None:
            asyncio.get_running_loop().add_reader(self._lifeline, self._supervisor_died)
        if self._announce is not None:
            # Whoever wanted to hear it may have been told to stop meanwhile: this process will be, too.
            with suppress(BrokenPipeError):
                os.write(self._announce, self._announced)
            os.close(self._announce)

    async def on_tick(self, counter: int) -> bool:
        if self._acceptor is not None:
            self._acceptor.tell()
        if self._board is not None:
            self._board.beat()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        from conversations import process  # noqa: PLC0415 - it has models, which need the set-up

        if self._acceptor is not None:
            self._acceptor.stop()
        # Streams that outlive the grace period would be cut without a word.
        process.current().wind_down(GRACE_SECONDS - 3)
        await super().shutdown(sockets)

    def _supervisor_died(self) -> None:
        asyncio.get_running_loop().remove_reader(self._lifeline or 0)
        self.should_exit = True


def _load() -> None:
    """Next to nothing of what is imported is garbage; the collector would look through all of it again and again."""
    gc.disable()
    django.setup()
    importlib.import_module("bridge_project.asgi")
    gc.collect()
    gc.freeze()
    gc.enable()


def _share_memory() -> None:
    """Threads take their memory from few heaps, where the C library lets one say so."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(ARENA_MAX, ARENAS)


def _prepare() -> announcement.FirstRun:
    from bridge_project.up.preparation import complain, prepare  # noqa: PLC0415 - it has models, which need the set-up

    complain()
    return prepare()


def _listener() -> socket.socket:
    from bridge_project import settings  # noqa: PLC0415 - reading them may fail, and main() reports it

    return claim_port(settings.HOST, settings.PORT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
