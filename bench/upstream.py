"""A fake OpenAI Chat Completions server that costs next to nothing: prebuilt bytes, no JSON read.

`python -m bench.upstream PORT`. `GET /control?chunks=500&delay_us=4000&stamp=1` sets what streams look like: with no
delay all chunks are one write (burst), else one write each (paced); with stamps each chunk tells when it left.
"""

import asyncio
import json
import re
import sys
import time
from typing import Any, cast
from urllib.parse import parse_qsl

from bench.bodies import ANSWER, FLOOD, HOLD

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
STREAMED = re.compile(rb'"stream": ?true')
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def chunk(payload: bytes) -> bytes:
    event = b"data: %b\n\n" % payload
    return b"%x\r\n%b\r\n" % (len(event), event)


def delta(content: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": content, "logprobs": None, "finish_reason": finish}
    shape = {"id": "fake", "object": "chat.completion.chunk", "created": 1, "model": "fake-model", "choices": [choice]}
    return json.dumps(shape | more, separators=(",", ":")).encode()


def text(words: bytes) -> bytes:
    return chunk(delta({"content": "WORDS"}).replace(b"WORDS", words))


def whole() -> bytes:
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "fake", "object": "chat.completion", "model": "fake-model", "choices": [choice], "usage": USAGE}
    encoded = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        len(encoded),
        encoded,
    )


class Settings:
    def __init__(self) -> None:
        self.chunks, self.delay, self.stamp = 500, 0.0, False
        self.first = chunk(delta({"role": "assistant", "content": ""}))
        self.tail = (
            chunk(delta({}, "stop")) + chunk(delta({}, choices=[], usage=USAGE)) + chunk(b"[DONE]") + b"0\r\n\r\n"
        )
        self.whole = whole()
        self.flood = text(b" word" * 800) * 25  # long: the bridge says what one read brought in one piece
        self.flooded = 0  # bytes
        self.prepare()

    def take(self, query: str) -> None:
        given = dict(parse_qsl(query))
        self.chunks = int(given.get("chunks", 500))
        self.delay = int(given.get("delay_us", 0)) / 1e6
        self.stamp = given.get("stamp") == "1"
        self.prepare()

    def prepare(self) -> None:
        self.words = [text(b" word%d" % (number % 10)) for number in range(self.chunks)]
        self.burst = HEAD + self.first + b"".join(self.words) + self.tail


class Connection(asyncio.Protocol):
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._buffer = b""
        self._pacing: asyncio.TimerHandle | None = None
        self._flooding = self._floods = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def pause_writing(self) -> None:
        self._flooding = False

    def resume_writing(self) -> None:
        if self._floods:
            self._flood()

    def connection_lost(self, _: Exception | None) -> None:
        self._flooding = False
        if self._pacing is not None:
            self._pacing.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            found = LENGTH.search(self._buffer, 0, end + 2)
            size = end + 4 + (int(found[1]) if found else 0)
            if len(self._buffer) < size:
                return
            head, body, self._buffer = self._buffer[:end], self._buffer[end + 4 : size], self._buffer[size:]
            self._answer(head.split(b" ", 2)[1].decode(), body)

    def _answer(self, target: str, body: bytes) -> None:
        settings = self._settings
        path, _, query = target.partition("?")
        if path == "/control":
            settings.take(query)
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        elif path == "/flooded":
            number = b"%d" % settings.flooded
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(number), number))
        elif FLOOD.encode() in body:
            self._transport.write(HEAD + settings.first)
            self._flood()
        elif not STREAMED.search(body):
            self._transport.write(settings.whole)
        elif HOLD.encode() in body:
            self._transport.write(HEAD + settings.first + text(b"Waiting."))
        elif settings.delay:
            self._transport.write(HEAD + settings.first)
            self._pace(asyncio.get_running_loop().time(), 0)
        else:
            self._transport.write(settings.burst)

    def _flood(self) -> None:
        """Until the other side takes no more; and again when it does."""
        self._flooding = self._floods = True
        while self._flooding and not self._transport.is_closing():
            self._settings.flooded += len(self._settings.flood)
            self._transport.write(self._settings.flood)

    def _pace(self, started: float, number: int) -> None:
        settings = self._settings
        if number == settings.chunks:
            self._transport.write(settings.tail)
            return
        stamped = settings.stamp and number
        self._transport.write(text(b"@%d;" % time.monotonic_ns()) if stamped else settings.words[number])
        due = started + (number + 1) * settings.delay
        self._pacing = asyncio.get_running_loop().call_at(due, self._pace, started, number + 1)


async def serve(port: int) -> None:
    settings = Settings()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(settings), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(int(sys.argv[1])))
