"""What clients do to a history before they send it. Each takes a list of messages and returns another."""

from collections.abc import Callable
from random import Random

from tests.translation.history.conversations import Json, blocks_of

Damage = Callable[[Random, list[Json]], list[Json]]


def subsequence(rng: Random, messages: list[Json]) -> list[Json]:
    keep = rng.random()
    return [message for message in messages if rng.random() < keep]


def lost_blocks(rng: Random, messages: list[Json]) -> list[Json]:
    return [{**message, "content": [b for b in blocks_of(message) if rng.random() < 0.85]} for message in messages]


def interrupted(rng: Random, messages: list[Json]) -> list[Json]:
    cut = rng.randint(1, max(1, len(messages)))
    return [*messages[:cut], {"role": "user", "content": "[Request interrupted by user]"}]


def compacted(rng: Random, messages: list[Json]) -> list[Json]:
    cut = rng.randint(0, len(messages))
    return [{"role": "user", "content": "This session is continued. Summary: ..."}, *messages[cut:]]


def rewound(rng: Random, messages: list[Json]) -> list[Json]:
    return messages[: rng.randint(1, max(1, len(messages)))]


def reordered(rng: Random, messages: list[Json]) -> list[Json]:
    out = list(messages)
    for _ in range(rng.randint(1, 2)):
        if len(out) > 1:
            one, other = rng.randrange(len(out)), rng.randrange(len(out))
            out[one], out[other] = out[other], out[one]
    return out


def newest_turn(rng: Random, messages: list[Json]) -> list[Json]:
    return messages[-rng.randint(1, 3) :]


def without_thinking(rng: Random, messages: list[Json]) -> list[Json]:
    return [{**m, "content": [b for b in blocks_of(m) if b["type"] != "thinking"]} for m in messages]


def repeated_results(rng: Random, messages: list[Json]) -> list[Json]:
    return [_each(m, lambda b: [b, b] if b["type"] == "tool_result" and rng.random() < 0.3 else [b]) for m in messages]


def repeated_messages(rng: Random, messages: list[Json]) -> list[Json]:
    return [each for message in messages for each in [message] * (2 if rng.random() < 0.15 else 1)]


def shuffled_blocks(rng: Random, messages: list[Json]) -> list[Json]:
    return [{**m, "content": rng.sample(b, len(b))} for m in messages for b in [blocks_of(m)]]


def empty_texts(rng: Random, messages: list[Json]) -> list[Json]:
    blank = {"type": "text", "text": rng.choice(("", " ", "\n\n"))}
    return [_each(m, lambda b: [b, blank] if rng.random() < 0.2 else [b]) for m in messages]


def late_results(rng: Random, messages: list[Json]) -> list[Json]:
    """Background tools: some results come a few messages later."""
    held: list[Json] = []
    out: list[Json] = []
    for message in messages:
        content = blocks_of(message)
        if message["role"] == "user":
            late = [b for b in content if b["type"] == "tool_result" and rng.random() < 0.3]
            content = [b for b in content if b not in late] + (held if rng.random() < 0.5 else [])
            held = late
        out.append({**message, "content": content})
    return out


def split_answers(rng: Random, messages: list[Json]) -> list[Json]:
    """One message per block, as some clients keep their transcript."""
    return [{**m, "content": [b]} for m in messages for b in blocks_of(m)]


def reused_ids(rng: Random, messages: list[Json]) -> list[Json]:
    """A client that numbers its calls anew in each session."""

    def renamed(block: Json) -> list[Json]:
        key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(block["type"])
        return [{**block, key: f"call_{ord(block[key][-1]) % 3}"}] if key else [block]

    return [_each(message, renamed) for message in messages]


def misplaced(rng: Random, messages: list[Json]) -> list[Json]:
    """Roles mixed up: what no client should do, and some do."""

    def flipped(message: Json) -> Json:
        movable = all(block["type"] != "image" for block in blocks_of(message)) and rng.random() < 0.1
        return {**message, "role": rng.choice(("user", "assistant"))} if movable else message

    return list(map(flipped, messages))


def _each(message: Json, change: Callable[[Json], list[Json]]) -> Json:
    return {**message, "content": [block for each in blocks_of(message) for block in change(each)]}


KINDS: tuple[Damage, ...] = (
    subsequence,
    lost_blocks,
    interrupted,
    compacted,
    rewound,
    reordered,
    newest_turn,
    without_thinking,
    repeated_results,
    repeated_messages,
    shuffled_blocks,
    empty_texts,
    late_results,
    split_answers,
    reused_ids,
    misplaced,
)


def damaged(rng: Random, messages: list[Json]) -> list[Json]:
    for damage in rng.sample(KINDS, rng.choice((0, 1, 1, 2, 3))):
        messages = damage(rng, messages) or messages
    return messages
