"""An operator who watches a conversation through the real server's WebSocket."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from websockets import Origin
from websockets.sync.client import ClientConnection, connect

from tests.admin.browser import PASSWORD, USER
from tests.servers.bridge import Bridge


def sign_in(bridge: Bridge, user: str = USER) -> str:
    """The cookies of a session."""
    with httpx.Client(base_url=bridge.url) as http:
        page = http.get("/admin/login/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token is not None
        form = {"username": user, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
        assert http.post("/admin/login/", data=form).status_code == 302
        return "; ".join(f"{name}={value}" for name, value in http.cookies.items())


class Watcher:
    """What the socket has told so far: each turn as it was last told, and the calls that wait."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.turns: dict[str, Any] = {}
        self.waiting: list[Any] = []
        self.running: list[Any] = []
        self.progress: list[Any] = []  # of tools, every one that was told
        self.numbers: list[int] = []

    def until(self, holds: Callable[["Watcher"], object], seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not holds(self):
            update = json.loads(self._socket.recv(timeout=max(end - time.monotonic(), 0)))
            self.numbers.append(update["number"])
            self.turns |= {turn["id"]: turn for turn in update["turns"]}
            self.waiting = update["waiting"]
            self.running = update["progress"]
            self.progress += self.running

    @property
    def last(self) -> Any:
        return self.turns[max(self.turns, key=int)] if self.turns else {"status": "", "blocks": []}

    def says(self, words: str) -> bool:
        return any(words in block["text"] for block in self.last["blocks"])


@contextmanager
def watching(bridge: Bridge, conversation: int, cookies: str, after: str = "0", origin: str = "") -> Iterator[Watcher]:
    url = f"{bridge.url.replace('http', 'ws')}/ws/conversations/{conversation}/?after={after}"
    headers = {"cookie": cookies} if cookies else {}
    with connect(url, origin=Origin(origin or bridge.url), additional_headers=headers, max_size=None) as socket:
        yield Watcher(socket)
