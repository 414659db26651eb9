"""MiniMax's markup parser is linear in its input: `python bench/markup.py` from the repository's root.

Each line is one kind of value at one size, fed in chunks of 4 characters (a token of a model), of 64, and whole. Time
per megabyte stays the same as the size grows; a quadratic parser would take four times as long at each step.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from translation.markup import Markup
from translation.markup_tags import M2, M3, NAMESPACE, Grammar

PIECES = {
    "words": "some words ",
    "html": "<a href='x'>y</a> ",
    "white space": "    \n",
    "closing tags": "</parameter>z",
    "ends of calls": "</invoke> z",
    "open angle brackets": "<",
    "template markers": "]~b]",
}
SIZES = (250_000, 1_000_000, 4_000_000)


def call(value: str, grammar: Grammar) -> str:
    if grammar.namespaced:
        n = NAMESPACE
        return f'{n}<tool_call>{n}<invoke name="Write">{n}<content>{value}{n}</content>{n}</invoke>{n}</tool_call>'
    invoke = f'<invoke name="Write"><parameter name="content">{value}</parameter></invoke>'
    return f"<minimax:tool_call>{invoke}</minimax:tool_call>"


def seconds(text: str, size: int, grammar: Grammar) -> float:
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    markup = Markup(grammar, frozenset({"Write"}))
    started = time.process_time()
    for chunk in chunks:
        markup.feed(chunk)
    markup.close()
    return time.process_time() - started


def main() -> None:
    write = sys.stdout.write
    write(f"{'value of a call':<24}{'size':>10}{'chunks of 4':>16}{'chunks of 64':>16}{'whole':>12}   seconds per MB\n")
    for name, grammar in (("m2", M2), ("m3", M3)):
        for kind, piece in PIECES.items():
            for size in SIZES:
                text = call(piece * (size // len(piece)), grammar)
                times = [seconds(text, chunk, grammar) * 1e6 / size for chunk in (4, 64, len(text))]
                write(f"{name + ' ' + kind:<24}{size:>10}{times[0]:>16.3f}{times[1]:>16.3f}{times[2]:>12.3f}\n")


if __name__ == "__main__":
    main()
