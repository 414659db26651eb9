"""Which JSON Schema keywords Gemini takes, and what becomes of the others. One in no table is dropped and noted."""

TYPES = {
    "string": "STRING",
    "number": "NUMBER",
    "integer": "INTEGER",
    "boolean": "BOOLEAN",
    "array": "ARRAY",
    "object": "OBJECT",
}
# The limits that a type keeps, and what their value must be. Beside another type a limit says nothing.
KEPT: dict[str, dict[str, type]] = {
    "STRING": {"minLength": int, "maxLength": int, "pattern": str},
    "NUMBER": {"minimum": float, "maximum": float},
    "INTEGER": {"minimum": float, "maximum": float},
    "BOOLEAN": {},
    "ARRAY": {"minItems": int, "maxItems": int},
    "OBJECT": {"minProperties": int, "maxProperties": int},
}
FORMATS = {"STRING": ("date-time",), "NUMBER": ("float", "double"), "INTEGER": ("int32", "int64")}
HINTS = {  # the type that a keyword speaks of, where `type` is missing
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "patternProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minLength": "string",
    "maxLength": "string",
    "pattern": "string",
    "minimum": "number",
    "maximum": "number",
}
LIMITS = frozenset(keyword for kept in KEPT.values() for keyword in kept)
# Lowered by code, or without meaning for the model.
HANDLED = frozenset(
    (
        "type", "nullable", "description", "title", "enum", "const", "anyOf", "oneOf", "properties", "required",
        "items", "prefixItems", "$schema", "$id", "id", "$comment", "$anchor", "$defs", "definitions", "$vocabulary",
        "readOnly", "writeOnly", "deprecated",
    )
)  # fmt: skip
# Told to the model in words.
TOLD = LIMITS | frozenset(
    (
        "format", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "default", "example", "examples", "uniqueItems",
        "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "patternProperties", "propertyNames",
        "dependentRequired", "dependentSchemas", "dependencies", "contains", "minContains", "maxContains", "not", "if",
        "then", "else", "contentEncoding", "contentMediaType", "contentSchema",
    )
)  # fmt: skip
OPEN = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems")  # as booleans they change no answer
KINDS: dict[type, str] = {bool: "BOOLEAN", int: "INTEGER", float: "NUMBER", str: "STRING"}
