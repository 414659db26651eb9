"""What every scripted model does, whatever its dialect: a call, two calls at once, a text; then once more, shorter.

A conversation is named by a mark in its first user message, which also says how the model is to name its calls.
"""

import base64
import re
from typing import Any, NamedTuple

Json = dict[str, Any]
MARK = re.compile(r"\[chain (?P<name>\w+) ids=(?P<ids>\w+)\]")
IDS = ("own", "missing", "repeated", "odd", "long")


class Call(NamedTuple):
    name: str
    arguments: Json


class Step(NamedTuple):
    text: str
    calls: tuple[Call, ...] = ()


STEPS = (
    Step("I read a.", (Call("Read", {"path": "a.txt"}),)),
    Step("", (Call("Read", {"path": "b.txt"}), Call("Bash", {"command": "ls 'ü' \"<&>\"\n", "wait": True}))),
    Step("Both are done."),
    Step("", (Call("Bash", {"command": "pwd"}),)),
    Step("All is done."),
)
TOOLS: list[Any] = [
    {
        "name": "Read",
        "description": "Read a file",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
    {
        "name": "Bash",
        "description": "Run a command",
        "input_schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"command": {"type": "string"}, "wait": {"type": ["boolean", "null"]}},
            "required": ["command"],
            "additionalProperties": False,
        },
    },
]
# What every model says it cost, in Anthropic's way of counting: prompt 100, of which 60 were cached.
COST = {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 20}
THOUGHT_TOKENS = 8


class Chain(NamedTuple):
    """A conversation as its mark names it."""

    name: str
    ids: str

    @property
    def mark(self) -> str:
        return f"[chain {self.name} ids={self.ids}]"


def chain_of(text: str) -> Chain | None:
    found = MARK.search(text)
    return Chain(found["name"], found["ids"]) if found else None


class Speech(NamedTuple):
    """One answer of one provider in one conversation: everything in it follows from these."""

    provider: str
    chain: Chain
    number: int
    stream: bool

    @property
    def step(self) -> Step:
        return STEPS[self.number]

    @property
    def thought(self) -> str:
        return f'{self.secret("thought")}: "quoted" \\ ü 😀\n  and a second line'

    @property
    def blob(self) -> str:
        """Opaque state, as Base64."""
        return base64.b64encode(self.secret("blob").encode()).decode()

    def secret(self, what: str) -> str:
        return f"canary-{what}-of-{self.provider}-{self.chain.name}-{self.number}"

    @property
    def secrets(self) -> tuple[str, str]:
        """What no other provider may ever see."""
        return self.secret("thought"), self.blob

    def id(self, index: int) -> str:
        """How this model names a call; "" when it does not."""
        own = f"call_{self.chain.name}_{self.number}_{index}"
        if self.provider == "mistral" and self.chain.ids == "own":
            return f"{self.chain.name:x<7.7}{self.number}{index}"
        named = {
            "own": own,
            "missing": "",
            "repeated": "call_0",
            "odd": f"functions.{self.step.calls[index].name}:{index}",
            "long": f"{own}_{'x' * 120}",
        }
        return named[self.chain.ids]


class Result(NamedTuple):
    text: str
    is_error: bool = False


def result_of(number: int, index: int) -> Result:
    """What the client answers to a call of the script; the second of a pair fails."""
    return Result(f"output {number}.{index}", index == 1)


def results_of(number: int) -> list[Result]:
    return [result_of(number, index) for index in range(len(STEPS[number].calls))]
