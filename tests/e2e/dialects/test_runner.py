"""The SDK's own tool runner, which keeps its history in a thread of the bridge, with every provider."""

from typing import Any

import pytest
from anthropic import Anthropic, beta_tool
from anthropic.lib.tools import ToolError

from tests.e2e.dialects.conftest import NewChain
from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import BY_NAME, NAMES
from tests.e2e.dialects.script import STEPS, results_of


@beta_tool(name="Read")
def read(path: str) -> str:
    """Read a file."""
    return results_of(0 if path == "a.txt" else 1)[0].text


@beta_tool(name="Bash")
def bash(command: str, wait: bool = False) -> str:
    """Run a command."""
    raise ToolError(results_of(1)[1].text)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_tool_runner_comes_to_its_end(
    name: str, stream: bool, sdk: Anthropic, models: Models, new_chain: NewChain
) -> None:
    asked: Any = {
        "model": BY_NAME[name].route,
        "max_tokens": 4096,
        "tools": [read, bash],
        "messages": [{"role": "user", "content": f"{new_chain().mark} Go."}],
    }
    if stream:
        streams = list(sdk.beta.messages.tool_runner(**asked, stream=True))
        message = streams[-1].get_final_message()
    else:
        message = sdk.beta.messages.tool_runner(**asked).until_done()
    assert [block.text for block in message.content if block.type == "text"] == [STEPS[2].text]
    assert models.refusals == []
    assert len(models.requests) == 3
