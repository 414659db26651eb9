"""What the chain hash of a long history costs: 101 messages, 147 kB. Run: python bench/chain.py"""

import sys
import timeit

from translation.chain import chain
from translation.values import Message, Text, ToolResult, ToolUse


def history() -> tuple[Message, ...]:
    messages = [Message("user", (Text("Fix the failing test. " * 20),))]
    for step in range(50):
        call = ToolUse(f"toolu_{step:024d}", "Read", b'{"file_path":"/src/module.py"}')
        messages.append(Message("assistant", (Text("Now I look at the next file of the module."), call)))
        messages.append(Message("user", (ToolResult(call.id, (Text("    return value  # line\n" * 117),)),)))
    return tuple(messages)


if __name__ == "__main__":
    messages = history()
    best = min(timeit.repeat(lambda: chain(messages), number=20, repeat=20)) / 20
    sys.stdout.write(f"{len(messages)} messages: {best * 1e6:.0f} us\n")
