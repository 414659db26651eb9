"""What Gemini refuses, from its published rules and error texts: for tests and for a scripted upstream."""

import re
from typing import Any

import msgspec

from translation.providers.gemini_models import abilities

TOP = {"systemInstruction", "tools", "toolConfig", "generationConfig", "contents", "safetySettings", "cachedContent"}
CONFIG = {
    "maxOutputTokens", "temperature", "topP", "topK", "stopSequences", "thinkingConfig", "responseMimeType",
    "responseSchema",
}  # fmt: skip
PART_KINDS = {"text", "functionCall", "functionResponse", "inlineData", "fileData", "toolCall", "toolResponse"}
SCHEMA = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "anyOf", "items", "minimum", "maximum",
}  # fmt: skip
TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}
FORMATS = {"STRING": {"date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}")


def violations(body: bytes, model: str) -> list[str]:
    """Why Gemini would answer 400; nothing when it would not."""
    found: list[str] = []
    value = msgspec.json.decode(body)
    found += [f'Unknown name "{name}": Cannot find field.' for name in value if name not in TOP]
    config = value["generationConfig"]
    found += [f'Unknown name "{name}" at generation_config' for name in config if name not in CONFIG]
    if len(config.get("stopSequences", [])) > 5:
        found.append("at most 5 stop sequences")
    if "responseSchema" in config:
        found += schema_violations(config["responseSchema"], "response_schema")
    found += _tools(value)
    found += _contents(value["contents"], signatures=abilities(model).signatures)
    return found


def _tools(value: dict[str, Any]) -> list[str]:
    found = []
    declared = [d for tool in value.get("tools", []) for d in tool.get("functionDeclarations", [])]
    names = [declaration["name"] for declaration in declared]
    if len(set(names)) != len(names):
        found.append("Duplicate function declaration found")
    for declaration in declared:
        if not NAME.fullmatch(declaration["name"]):
            found.append(f"Invalid function name {declaration['name']}")
        if "parameters" in declaration:
            found += schema_violations(declaration["parameters"], declaration["name"])
            if not declaration["parameters"].get("properties"):
                found.append("parameters.properties: should be non-empty for OBJECT type")
    calling = value.get("toolConfig", {}).get("functionCallingConfig", {})
    if calling and not declared:
        found.append("Function calling config is set without function_declarations.")
    found += [
        f"unknown allowed function {name}" for name in calling.get("allowedFunctionNames", []) if name not in names
    ]
    return found


def schema_violations(node: Any, path: str = "") -> list[str]:
    found = [f'Unknown name "{name}" at {path}: Cannot find field.' for name in node if name not in SCHEMA]
    if "anyOf" in node:
        if len(node) > 1:
            found.append(f"{path}: when using any_of, it must be the only field set")
        for index, branch in enumerate(node["anyOf"]):
            found += schema_violations(branch, f"{path}.anyOf.{index}")
        return found
    kind = node.get("type")
    if kind not in TYPES:
        return [*found, f"{path}.type: {kind!r} is not a type"]
    if "enum" in node and (kind != "STRING" or not all(isinstance(v, str) and v for v in node["enum"])):
        found.append(f"{path}.enum: only allowed for STRING type, of non-empty strings")
    if "format" in node and node["format"] not in FORMATS.get(kind, ()):
        found.append(f"{path}.format: only 'enum' and 'date-time' are supported for STRING type")
    if kind == "ARRAY" and "items" not in node:
        found.append(f"{path}.items: missing field.")
    if not isinstance(node.get("description", ""), str) or not isinstance(node.get("nullable", True), bool):
        found.append(f"{path}: wrong value")
    found += [f"{path}.required: {n} is not defined" for n in node.get("required", []) if n not in node["properties"]]
    for name, inner in node.get("properties", {}).items():
        found += schema_violations(inner, f"{path}.{name}")
    return found + (schema_violations(node["items"], f"{path}[]") if "items" in node else [])


def _contents(contents: list[Any], *, signatures: bool) -> list[str]:
    found = []
    roles = [content["role"] for content in contents]
    if roles != [("user", "model")[index % 2] for index in range(len(roles))] or roles[-1:] != ["user"]:
        found.append(f"Please ensure that roles alternate and that the last is user: {roles}")
    asked: list[str] = []
    turn = max(
        (i for i, content in enumerate(contents) if content["role"] == "user" and not _all_results(content)), default=0
    )
    for index, content in enumerate(contents):
        parts = content["parts"]
        if not parts or not all(len(PART_KINDS & set(part)) == 1 for part in parts):
            found.append(f"contents[{index}].parts: must have one initialized field each")
        answers = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if content["role"] == "user":
            if answers != asked:
                found.append(
                    "Please ensure that the number of function response parts is equal to the number of "
                    f"function call parts of the function call turn: {asked} {answers}"
                )
            if answers and not all("functionResponse" in part for part in parts[: len(answers)]):
                found.append(f"contents[{index}]: function responses have to come first")
            asked = []
            continue
        calls = [part for part in parts if "functionCall" in part]
        asked = [part["functionCall"]["name"] for part in calls]
        found += [f"Invalid function name {name}" for name in asked if not NAME.fullmatch(name)]
        if any(not isinstance(part["functionCall"]["args"], dict) for part in calls):
            found.append(f"contents[{index}]: args is not a Struct")
        if signatures and calls and index > turn and not any("thoughtSignature" in part for part in parts):
            found.append(
                f"Function call is missing a thought_signature in functionCall parts: `{asked[0]}`, position {index}."
            )
    return found


def _all_results(content: Any) -> bool:
    return all("functionResponse" in part for part in content["parts"])
