"""Upstream answers gone wrong, from a seed: captures with broken bytes, events and values, and what is no answer at all."""
# ruff: noqa: E501 - a table reads best in its own lines

import gzip
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from tests.translation.captures import Case

DEEP = "[" * 5000 + "]" * 5000
LONG = 10_000_000
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**70), 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "",
    " ", "\0", "\ud800", "\udc00\ud800", "\u2028", "x" * 5000, "é", "null", "{}", "[]", "{", '{"a":', '{"a":NaN}', "<b>",
    [], {}, [[]], [None], [1, "a"], [{}], {"": ""}, {"type": "no_such_type"}, {"type": None}, {"text": 7}, {"error": "x"},
    "no_such_value", "stop", "tool_calls", "length", "STOP", "MALFORMED_FUNCTION_CALL", "refusal", "end_turn", "tool_use",
    "data: x\n\ndata: y", "\n\n", "\r", "event: message_stop", "</think>", "<think>", "<minimax:tool_call>", "</invoke>",
)  # fmt: skip
PAGES: tuple[tuple[str, bytes], ...] = (
    ("text/html", b"<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>"),
    ("text/html", b"\n\n  <html>" + b"x" * 10_000),
    ("text/plain", b"upstream connect error or disconnect/reset before headers"),
    ("application/json", b""),
    ("text/event-stream", b""),
    ("", b"null"),
    ("application/json", b"[]"),
    ("application/json", b"{}"),
    ("application/json", b'"text"'),
    ("application/json", b"NaN"),
    ("application/json", DEEP.encode()),
    ("application/json", b'{"error":' + DEEP.encode() + b"}"),
    ("application/json", b'{"error":null}'),
    ("application/json", b'{"error":{"message":null,"type":7,"code":[]}}'),
    ("application/json", b'{"detail":"Not Found"}'),
    ("text/event-stream", b"data: [DONE]\n\n"),
    ("text/event-stream", b"data: [DONE]\n\n" * 5),
    ("text/event-stream", b"data: {}\n\n" * 50),
    ("text/event-stream", b'event: error\ndata: {"error":{"message":"it broke"}}\n\n'),
    ("text/event-stream", b'data: {"error":{"message":"it broke","code":503}}\n\n'),
    ("text/event-stream", b": ping\n\n" * 100),
    ("text/event-stream", b"retry: 5\nid: 7\n\n"),
    ("text/event-stream", b"data: " + DEEP.encode() + b"\n\n"),
    ("application/xml", b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>"),
)
TYPES = (
    "text/event-stream",
    "application/json",
    "text/html",
    "",
    "application/x-ndjson",
    "text/plain; charset=latin-1",
)


class Answer(NamedTuple):
    content_type: str
    body: bytes


def fuzzed(rng: Random, case: Case, others: list[Case]) -> Answer:
    """One answer: a capture with one to four things wrong, or a page that is none. `others` speak the same dialect."""
    if rng.random() < 0.03:
        return Answer(*rng.choice(PAGES))
    if rng.random() < 0.01:
        return Answer(rng.choice(TYPES), rng.randbytes(rng.randrange(2000)))
    body, content_type = case.upstream, case.content_type
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        body = rng.choice(WRONGS)(rng, body, others)
    if rng.random() < 0.05:
        content_type = rng.choice(TYPES)
    return Answer(content_type, body)


def cuts(rng: Random, length: int) -> list[int]:
    return sorted(rng.randint(0, length) for _ in range(rng.choice((0, 0, 1, 3, 8))))


def huge(case: Case, rng: Random) -> Answer:
    """One line of 10 MB where a capture has a short one."""
    frames = case.upstream.split(b"\n")
    at = rng.randrange(len(frames))
    frames[at] += rng.choice((b"x", b" ", b"[", b"\xff")) * LONG
    return Answer(case.content_type, b"\n".join(frames))


# ---------------------------------------------------------------- bytes


def flipped(rng: Random, body: bytes, _: list[Case]) -> bytes:
    out = bytearray(body)
    for _each in range(rng.choice((1, 1, 2, 10)) if out else 0):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def cut_short(rng: Random, body: bytes, _: list[Case]) -> bytes:
    return body[: rng.randint(0, len(body))]


def without_slice(rng: Random, body: bytes, _: list[Case]) -> bytes:
    start = rng.randint(0, len(body))
    return body[:start] + body[start + rng.randrange(200) :]


def repeated_slice(rng: Random, body: bytes, _: list[Case]) -> bytes:
    start = rng.randint(0, len(body))
    end = start + rng.randrange(300)
    return body[:end] + body[start:end] * rng.choice((1, 1, 3)) + body[end:]


def inserted(rng: Random, body: bytes, _: list[Case]) -> bytes:
    at = rng.randint(0, len(body))
    junk = rng.choice(
        (rng.randbytes(8), b"\n\n", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xed\xa0\x80", b": x\n\n", b"data: \n\n")
    )
    return body[:at] + junk + body[at:]


def other_line_ends(rng: Random, body: bytes, _: list[Case]) -> bytes:
    return body.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n")))


def compressed(rng: Random, body: bytes, _: list[Case]) -> bytes:
    """Sent compressed without saying so, perhaps cut."""
    packed = gzip.compress(body, 1)
    return packed[: rng.randint(1, len(packed))] if rng.random() < 0.7 else packed


# ---------------------------------------------------------------- events


def dropped_event(rng: Random, body: bytes, _: list[Case]) -> bytes:
    return _events(body, lambda events: events.pop(rng.randrange(len(events))))


def repeated_event(rng: Random, body: bytes, _: list[Case]) -> bytes:
    return _events(body, lambda events: events.insert(rng.randrange(len(events)), rng.choice(events)))


def swapped_events(rng: Random, body: bytes, _: list[Case]) -> bytes:
    def swap(events: list[bytes]) -> None:
        one, other = rng.randrange(len(events)), rng.randrange(len(events))
        events[one], events[other] = events[other], events[one]

    return _events(body, swap)


def repeated_end(rng: Random, body: bytes, _: list[Case]) -> bytes:
    """A second finish, or the whole answer again."""
    return _events(body, lambda events: events.extend(events[-rng.randint(1, len(events)) :]))


def interleaved(rng: Random, body: bytes, others: list[Case]) -> bytes:
    strange = rng.choice(others).upstream.split(b"\n\n")

    def mix(events: list[bytes]) -> None:
        for event in strange:
            events.insert(rng.randint(0, len(events)), event)

    return _events(body, mix)


def spliced(rng: Random, body: bytes, others: list[Case]) -> bytes:
    other = rng.choice(others).upstream
    return body[: rng.randint(0, len(body))] + other[rng.randint(0, len(other)) :]


def _events(body: bytes, change: Callable[[list[bytes]], object]) -> bytes:
    events = [event for event in body.split(b"\n\n") if event]
    if events:
        change(events)
    return b"".join(event + b"\n\n" for event in events)


# ---------------------------------------------------------------- values


def wrong_value(rng: Random, body: bytes, _: list[Case]) -> bytes:
    """Somewhere in the JSON of one event: another value, a missing or a strange key."""
    lines = body.split(b"\n")
    places = [at for at, line in enumerate(lines) if line.startswith((b"data: {", b"{"))]
    if not places:
        return body
    at = rng.choice(places)
    head, brace, rest = lines[at].partition(b"{")
    try:
        value = json.loads(brace + rest)
    except (ValueError, RecursionError):
        return body
    lines[at] = head + json.dumps(changed(rng, value)).encode()
    return b"\n".join(lines)


def changed(rng: Random, value: Any) -> Any:
    places = list(_places({"": value}, 0))
    if not places:
        return {"x": 1}
    holder, key = rng.choice(places)
    match rng.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[str(key) + rng.choice(("_", "x", ""))] = holder.pop(key)
        case 2 if isinstance(holder[key], str):
            holder[key] += str(rng.choice(("", "x", "\0", "\ud83d", '"', "}", "{")))
        case 3 if isinstance(holder[key], list):
            holder[key] = holder[key] * rng.choice((2, 3)) or [None]
        case _:
            holder[key] = rng.choice(VALUES)
    return value


def _places(holder: Any, depth: int) -> Iterator[tuple[Any, Any]]:
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    for key in keys:
        if depth:
            yield holder, key
        if isinstance(holder[key], dict | list):
            yield from _places(holder[key], depth + 1)
    if not depth and not isinstance(holder[""], dict | list):
        yield holder, ""


Wrong = Callable[[Random, bytes, list[Case]], bytes]
WRONGS: tuple[Wrong, ...] = (
    *(wrong_value,) * 8,
    *(flipped, cut_short, without_slice, repeated_slice, inserted),
    *(dropped_event, repeated_event, swapped_events, repeated_end, interleaved, spliced),
    *(other_line_ends, compressed),
)
