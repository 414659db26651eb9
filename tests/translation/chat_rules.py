"""What strict servers of the chat family refuse, from their published rules and error texts."""

import re
from typing import Any

import msgspec

from translation.providers.profiles import Profile

NAME = re.compile(r"[A-Za-z0-9_-]+")


def faults(body: bytes, profile: Profile) -> list[str]:
    """Why the provider would answer 400; empty when it would not."""
    value = msgspec.json.decode(body)
    messages = value["messages"]
    found = [*_tools(value, profile), *_order(messages), *_pairs(messages, profile)]
    if list(value)[-1] != "messages":
        found.append("messages is not last in the body")
    if "tool_choice" in value and not value.get("tools"):
        found.append("'tool_choice' is only allowed when 'tools' are specified.")
    return found


def _tools(value: dict[str, Any], profile: Profile) -> list[str]:
    functions = [tool["function"] for tool in value.get("tools", [])]
    found = [f"bad tool name {f['name']!r}" for f in functions if not _legal(f["name"], profile.name_limit)]
    found += [f"bad parameters of {f['name']}" for f in functions if not _is_object(f["parameters"])]
    if len({f["name"] for f in functions}) != len(functions):
        found.append("two tools have one name")
    return found


def _is_object(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object" and isinstance(schema.get("properties"), dict)


def _legal(name: str, limit: int) -> bool:
    return bool(NAME.fullmatch(name)) and len(name) <= limit


def _order(messages: list[dict[str, Any]]) -> list[str]:
    found = []
    for index, message in enumerate(messages):
        if message["role"] == "system" and index:
            found.append("System message must be at the beginning.")
        if not message.get("content") and not message.get("tool_calls"):
            found.append(f"messages[{index}]: content or tool_calls must be set")
        if index and message["role"] == messages[index - 1]["role"] != "tool":
            found.append(f"messages[{index}]: roles must alternate")
    return found


def _pairs(messages: list[dict[str, Any]], profile: Profile) -> list[str]:
    found: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if not waiting or message["tool_call_id"] != waiting.pop(0):
                found.append(f"messages[{index}]: a tool message must follow its call, in order")
            continue
        if waiting:
            found.append(f"messages[{index}]: tool_call_ids without response messages: {waiting}")
        waiting = [call["id"] for call in message.get("tool_calls", [])]
        found += [f"tool call id {id_!r} is used twice" for id_ in waiting if id_ in seen]
        found += [f"bad tool call id {id_!r}" for id_ in waiting if not _id_fits(id_, profile)]
        found += [f"bad arguments of {call['id']}" for call in message.get("tool_calls", []) if not _arguments(call)]
        seen.update(waiting)
    return [*found, f"unanswered at the end: {waiting}"] if waiting else found


def _id_fits(id_: str, profile: Profile) -> bool:
    if profile.id_length:
        return len(id_) == profile.id_length and id_.isalnum()
    return 0 < len(id_) <= profile.id_limit


def _arguments(call: dict[str, Any]) -> bool:
    return isinstance(msgspec.json.decode(call["function"]["arguments"]), dict)
