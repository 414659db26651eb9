"""Idle keep-alive connections by origin, the most recently used first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conversations.transport.origin import Origin

if TYPE_CHECKING:
    from conversations.transport.connection import Connection


class Pool:
    __slots__ = ("_idle", "keepalive")

    def __init__(self, keepalive: float) -> None:
        self._idle: dict[Origin, dict[Connection, None]] = {}  # the inner dict is an ordered set
        self.keepalive = keepalive

    def take(self, origin: Origin) -> Connection | None:
        idle = self._idle.get(origin)
        while idle:
            connection, _ = idle.popitem()
            if connection.open:
                return connection
        return None

    def put(self, connection: Connection) -> None:
        idle = self._idle.get(connection.origin)
        if idle is None:
            idle = self._idle[connection.origin] = {}
        idle[connection] = None

    def discard(self, connection: Connection) -> None:
        idle = self._idle.get(connection.origin)
        if idle is None:
            return
        idle.pop(connection, None)
        if not idle:
            del self._idle[connection.origin]

    def __len__(self) -> int:
        return sum(map(len, self._idle.values()))
