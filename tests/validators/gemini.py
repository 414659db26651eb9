"""Gemini's generateContent: contents that alternate, grouped responses, thought signatures, a schema allow-list."""

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import pairwise

from tests.validators.shapes import Json, decode, duplicates, unknown, words

TOP = words("contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels")
DATA = words(
    "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse"
)
PART = DATA | {"thought", "thoughtSignature", "videoMetadata", "mediaResolution"}
GENERATION = words(
    "stopSequences responseMimeType responseSchema responseJsonSchema candidateCount maxOutputTokens temperature "
    "topP topK seed presencePenalty frequencyPenalty thinkingConfig mediaResolution responseModalities"
)
SCHEMA = words(
    "type format title description nullable enum maxItems minItems properties required minProperties "
    "maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum"
)
URL_SAFE = str.maketrans("-_", "+/")
TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
FORMATS = {"string": {"date-time", "enum"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


def validate(body: bytes, *, signatures: bool = True) -> list[str]:
    """`signatures`: the model is one that demands them (Gemini 3)."""
    request = decode(body)
    contents = request.get("contents", [])
    return [
        *unknown(request, TOP, "body"),
        *_generation(request.get("generationConfig", {})),
        *_tools(request),
        *_system(request),
        *_roles(contents),
        *(each for index, content in enumerate(contents) for each in _content(content, index)),
        *_grouping(contents),
        *(_signatures(contents) if signatures else ()),
    ]


def _generation(config: Json) -> Iterator[str]:
    yield from unknown(config, GENERATION, "generationConfig")
    if len(config.get("stopSequences", [])) > 5:
        yield "generationConfig: at most 5 stop sequences"
    if "responseSchema" in config:
        yield from schema(config["responseSchema"], "generation_config.response_schema")


def _system(request: Json) -> Iterator[str]:
    system = request.get("systemInstruction")
    if system is not None and not any(part.get("text") for part in system.get("parts", [])):
        yield "systemInstruction: empty"


def _roles(contents: list[Json]) -> Iterator[str]:
    roles = [content.get("role") for content in contents]
    if not roles:
        yield "contents is not specified"
        return
    if roles[0] != "user":
        yield "contents[0]: the first content must be of the user"
    if roles[-1] != "user":
        yield "Please ensure that single turn requests end with a user role or the last content is of the user"
    for index, (one, other) in enumerate(pairwise(roles)):
        if one == other:
            yield f"contents[{index + 1}]: Please ensure that multiturn requests alternate between user and model."


def _content(content: Json, index: int) -> Iterator[str]:
    path = f"contents[{index}]"
    yield from unknown(content, frozenset({"role", "parts"}), path)
    if content.get("role") not in ("user", "model"):
        yield f"{path}: Please use a valid role: user, model."
    parts = content.get("parts", [])
    if not parts:
        yield f"{path}: Unable to submit request because it must include at least one parts field"
    for position, part in enumerate(parts):
        yield from _part(part, f"{path}.parts[{position}]", content.get("role", ""))


def _part(part: Json, path: str, role: str) -> Iterator[str]:
    yield from unknown(part, PART, path)
    if len(DATA & part.keys()) != 1:
        yield f"{path}: must have exactly one initialized field: {sorted(part)}"
    if part.get("text") == "" and "thoughtSignature" not in part:
        yield f"{path}: Unable to submit request because it has an empty text parameter."
    if "thoughtSignature" in part:
        try:
            base64.b64decode(part["thoughtSignature"].translate(URL_SAFE), validate=True)
        except (binascii.Error, ValueError):
            if part["thoughtSignature"] != "skip_thought_signature_validator":
                yield f"{path}.thoughtSignature: Base64 decoding failed"
        if role != "model":
            yield f"{path}: a thought signature in a user content"
    if "functionCall" in part:
        yield from _named(part["functionCall"], path, role, "model", frozenset({"id", "name", "args"}), "args")
    if "functionResponse" in part:
        allowed = frozenset({"id", "name", "response", "parts", "willContinue", "scheduling"})
        yield from _named(part["functionResponse"], path, role, "user", allowed, "response")


def _named(value: Json, path: str, role: str, owner: str, allowed: frozenset[str], field: str) -> Iterator[str]:
    yield from unknown(value, allowed, path)
    if role != owner:
        yield f"{path}: {field} in a content of {role!r}"
    if not NAME.fullmatch(value.get("name", "")):
        yield f"{path}: Invalid function name {value.get('name')!r}"
    if not isinstance(value.get(field, {}), dict):
        yield f"{path}.{field}: not an object (Proto field is not repeating, cannot start list)"
    if field == "response" and "response" not in value:
        yield f"{path}: functionResponse without response"


def _grouping(contents: list[Json]) -> Iterator[str]:
    waiting: list[Json] = []
    for index, content in enumerate(contents):
        parts = content.get("parts", [])
        responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        if len(responses) != len(waiting):
            yield (
                f"contents[{index}]: Please ensure that the number of function response parts is equal to the number "
                f"of function call parts of the function call turn. ({len(responses)} for {len(waiting)})"
            )
        for call, response in zip(waiting, responses, strict=False):
            if (call.get("name"), call.get("id")) != (response.get("name"), response.get("id")):
                yield f"contents[{index}]: response {response.get('name')} to call {call.get('name')}"
        waiting = calls
    if waiting:
        yield "Please ensure that function response turn comes immediately after a function call turn."


def _signatures(contents: list[Json]) -> Iterator[str]:
    for index, content in enumerate(contents):
        parts = content.get("parts", [])
        first = next((part for part in parts if "functionCall" in part), None)
        # Gemini now and then signs a thought or a late empty text in place of the call: that is legal as it came.
        if first is not None and not any(part.get("thoughtSignature") for part in parts):
            yield (
                "Function call is missing a thought_signature in functionCall parts. Additional data, function call "
                f"`default_api:{first['functionCall'].get('name')}`, position {index + 1}."
            )


def _tools(request: Json) -> Iterator[str]:
    declarations = [each for tool in request.get("tools", []) for each in tool.get("functionDeclarations", [])]
    if len(declarations) > 512:
        yield "tools[0].function_declarations: [FIELD_INVALID] At most 512 function declarations can be specified."
    names = [each.get("name", "") for each in declarations]
    allowed = frozenset({"name", "description", "parameters", "parametersJsonSchema", "response", "behavior"})
    for index, each in enumerate(declarations):
        path = f"tools[0].function_declarations[{index}]"
        yield from unknown(each, allowed, path)
        if not NAME.fullmatch(names[index]):
            yield f"{path}: Invalid function name {names[index]!r}"
        if "parameters" in each and "parametersJsonSchema" in each:
            yield f"{path}: parameters and parametersJsonSchema are mutually exclusive"
        if "parameters" in each:
            yield from schema(each["parameters"], f"{path}.parameters")
            if not each["parameters"].get("properties"):
                yield f"{path}.parameters.properties: should be non-empty for OBJECT type"
    yield from (f"Duplicate function declaration found: {name}" for name in duplicates(names))
    config = request.get("toolConfig", {}).get("functionCallingConfig", {})
    if config and not declarations:
        yield "Function calling config is set without function_declarations."
    if not set(config.get("allowedFunctionNames", [])) <= set(names):
        yield "allowed_function_names names a function that is not declared"


def schema(node: Json, path: str) -> Iterator[str]:
    for key in node:
        if key not in SCHEMA:
            yield f"Invalid JSON payload received. Unknown name \"{key}\" at '{path}': Cannot find field."
    if "anyOf" in node:
        if len(node) > 1:
            yield f"{path}: when using any_of, it must be the only field set"
    elif not isinstance(node.get("type"), str) or node["type"].lower() not in TYPES:
        yield f'Unknown name "type" at {path}: Proto field is not repeating, cannot start list.'
    else:
        yield from _typed(node, node["type"].lower(), path)
    yield from _inner(node, path)


def _typed(node: Json, kind: str, path: str) -> Iterator[str]:
    if "enum" in node and (kind != "string" or not all(isinstance(value, str) and value for value in node["enum"])):
        yield f"{path}.enum: only allowed for STRING type, and cannot be empty"
    if "format" in node and node["format"] not in FORMATS.get(kind, ()):
        yield f"{path}.format: only 'enum' and 'date-time' are supported for STRING type"
    if kind == "array" and "items" not in node:
        yield f"{path}.items: missing field."
    for name in node.get("required", []):
        if name not in node.get("properties", {}):
            yield f"{path}.required: property is not defined: {name}"
    if not isinstance(node.get("description", ""), str) or not isinstance(node.get("nullable", True), bool):
        yield f"{path}: Invalid value"


def _inner(node: Json, path: str) -> Iterator[str]:
    for name, inner in node.get("properties", {}).items():
        yield from schema(inner, f"{path}.properties[{name}]")
    if isinstance(node.get("items"), dict):
        yield from schema(node["items"], f"{path}.items")
    for position, inner in enumerate(node.get("anyOf", [])):
        yield from schema(inner, f"{path}.any_of[{position}]")
