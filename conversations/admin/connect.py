"""What to paste to reach this server with each client. Pure: a model's name may be anything, so it is always quoted."""

import json
import shlex

from msgspec import Struct

PLACEHOLDER = "YOUR_KEY"

# Environment variables that help Claude Code in front of a gateway: name, value, why.
CLAUDE_CODE = (
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1", "Only requests that the conversation needs; no telemetry."),
    ("CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "1", "Its /model list shows what this server offers."),
    ("API_TIMEOUT_MS", "600000", "Slow local models may think longer than the default allows."),
    ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1", "Fewer tools and betas, for upstreams that choke on many."),
)


class Snippet(Struct, frozen=True):
    """One client's lines."""

    name: str
    title: str
    about: str
    text: str


def snippets(server: str, model: str) -> tuple[Snippet, ...]:
    return (
        Snippet("claude", "Claude Code", "In the shell that it is started from.", _claude(server, model)),
        Snippet("environment", "Every SDK below", "They read these two variables.", _environment(server)),
        Snippet("python", "Python", "pip install anthropic", _python(model)),
        Snippet("typescript", "TypeScript", "npm install @anthropic-ai/sdk", _typescript(model)),
        Snippet("langchain", "LangChain", "pip install langchain-anthropic", _langchain(model)),
        Snippet("ai-sdk", "AI SDK", "npm install ai @ai-sdk/anthropic; its address has the version in it.",
                _ai_sdk(server, model)),
        Snippet("openai", "OpenAI's clients", "pip install openai; the same key, routes and records.",
                _openai(server, model)),
        Snippet("curl", "curl", "", _curl(server, model)),
    )  # fmt: skip


def _environment(server: str) -> str:
    return f"export ANTHROPIC_BASE_URL={shlex.quote(server)}\nexport ANTHROPIC_API_KEY={PLACEHOLDER}\n"


def _claude(server: str, model: str) -> str:
    return f"{_environment(server)}export ANTHROPIC_MODEL={shlex.quote(model)}\nclaude\n"


def _python(model: str) -> str:
    return f"""import anthropic

message = anthropic.Anthropic().messages.create(
    model={json.dumps(model)},
    max_tokens=1024,
    messages=[{{"role": "user", "content": "Hello"}}],
)
print(message.content)
"""


def _typescript(model: str) -> str:
    return f"""import Anthropic from "@anthropic-ai/sdk";

const message = await new Anthropic().messages.create({{
  model: {json.dumps(model)},
  max_tokens: 1024,
  messages: [{{ role: "user", content: "Hello" }}],
}});
console.log(message.content);
"""


def _langchain(model: str) -> str:
    return f"""from langchain_anthropic import ChatAnthropic

model = ChatAnthropic(model={json.dumps(model)})
print(model.invoke("Hello").content)
"""


def _ai_sdk(server: str, model: str) -> str:
    return f"""import {{ createAnthropic }} from "@ai-sdk/anthropic";
import {{ generateText }} from "ai";

const anthropic = createAnthropic({{ baseURL: {json.dumps(server + "/v1")} }});
const {{ text }} = await generateText({{ model: anthropic({json.dumps(model)}), prompt: "Hello" }});
console.log(text);
"""


def _openai(server: str, model: str) -> str:
    return f"""import os

import openai

client = openai.OpenAI(base_url={json.dumps(server + "/v1")}, api_key=os.environ["ANTHROPIC_API_KEY"])
answer = client.chat.completions.create(
    model={json.dumps(model)},
    messages=[{{"role": "user", "content": "Hello"}}],
)
print(answer.choices[0].message.content)
"""


def _curl(server: str, model: str) -> str:
    body = json.dumps({"model": model, "max_tokens": 256, "messages": [{"role": "user", "content": "Hello"}]})
    return (
        f"curl -s {shlex.quote(server + '/v1/messages')} "
        '-H "x-api-key: $ANTHROPIC_API_KEY" -H "content-type: application/json" \\\n'
        f"  -d {shlex.quote(body)}\n"
    )
