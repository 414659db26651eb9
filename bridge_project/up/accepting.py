"""Connections are taken from the socket that all web processes share, by the process that has the fewest.

The event loop's own servers take them as they wake up: of eight clients all came to one of two processes, and one in a
turn of the loop, so that of many at once to a busy process the last waited for seconds.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sized

from bridge_project.up.board import NOBODY, Board

log = logging.getLogger(__name__)

AT_ONCE = 16  # in one turn of the loop
WAIT_SECONDS = 0.001  # for a process with fewer; then whoever is there takes it
FULL_SECONDS = 0.5  # for descriptors


class Acceptor:
    """`connected` are the protocols whose connections are open."""

    def __init__(
        self,
        listener: socket.socket,
        factory: Callable[[], asyncio.Protocol],
        connected: Sized,
        board: Board | None,
    ) -> None:
        self._listener = listener
        self._factory = factory
        self._connected = connected
        self._board = board
        self._loop = asyncio.get_running_loop()
        self._coming: set[asyncio.Task[object]] = set()
        self._waiting: asyncio.TimerHandle | None = None
        self._listen()

    def tell(self) -> None:
        """The other processes how many there are, since some have left."""
        if self._board is not None:
            self._board.tell(len(self._connected) + len(self._coming))

    def stop(self) -> None:
        self._loop.remove_reader(self._listener)
        if self._waiting is not None:
            self._waiting.cancel()
        if self._board is not None:
            self._board.tell(NOBODY)

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._called)

    def _called(self) -> None:
        room = AT_ONCE if self._board is None else min(self._board.room, AT_ONCE)
        if room > 0:
            self._take(room)
        else:
            self._wait(WAIT_SECONDS)

    def _wait(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._waiting = self._loop.call_later(seconds, self._waited)

    def _waited(self) -> None:
        self._waiting = None
        self._listen()
        self._take(1)

    def _take(self, most: int) -> None:
        for _ in range(most):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return  # another process was faster, or the client has left
            except OSError as error:
                log.error("no connection can be taken: %s", error)
                self._wait(FULL_SECONDS)
                return
            connecting = self._loop.connect_accepted_socket(self._factory, connection)
            task: asyncio.Task[object] = self._loop.create_task(connecting)
            self._coming.add(task)
            task.add_done_callback(self._coming.discard)
            self.tell()
