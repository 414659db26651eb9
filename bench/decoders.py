"""What a decoder costs per chunk: `python bench/decoders.py` from the repository's root.

Each line is one dialect and one capture: one chunk of it repeated in the middle of the answer, fed in reads of one
chunk and of sixteen; CPU time, the best of five rounds. A dialect joins with a row in `ROWS`. The budget is twice the
first row.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.translation.captures import CAPTURES, Case, load
from translation.adapters import ADAPTERS, adapter
from translation.events import Failed, Finished

REPEATS = 20_000
ROUNDS = 5
ROWS = (  # capture, and what marks the chunk of it to repeat
    ("openai/text", b'"content":"Z'),
    ("deepseek/reasoning_then_parallel_calls", b'"reasoning_content":"two things."'),
    ("openai/parallel_interleaved", b'"arguments":"{\\"path\\":"'),
    ("openai-responses/text", b"response.output_text.delta"),
    ("gemini/text", b'"text"'),
    ("anthropic/text", b"text_delta"),
    ("minimax/text", b'"content":"'),
)


def frames(case: Case) -> list[bytes]:
    return [frame + b"\n\n" for frame in case.upstream.replace(b"\r\n", b"\n").split(b"\n\n") if frame.strip()]


def seconds(case: Case, chunks: list[bytes]) -> float:
    dialect = adapter(case.profile)
    decoder = dialect.decoder(case.request, case.target, dialect.build(case.request, case.target), case.content_type)
    started = time.process_time()
    for chunk in chunks:
        decoder.feed(chunk)
    return time.process_time() - started


def checked(case: Case, chunks: list[bytes]) -> None:
    """The repeated chunks must still be an answer, or the figure says nothing."""
    dialect = adapter(case.profile)
    decoder = dialect.decoder(case.request, case.target, dialect.build(case.request, case.target), case.content_type)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    if any(isinstance(event, Failed | Finished) for event in events):
        raise SystemExit(f"{case.id}: the repeated chunk ends the answer")


def measured(case: Case, mark: bytes) -> tuple[float, float]:
    parts = frames(case)
    place = next(index for index, frame in enumerate(parts) if mark in frame)
    head, chunk = parts[:place], parts[place]
    checked(case, [*head, *[chunk] * 50])
    single = [*head, *[chunk] * REPEATS]
    grouped = [*head, *[chunk * 16] * (REPEATS // 16)]
    return best(lambda: seconds(case, single)), best(lambda: seconds(case, grouped))


def best(run: Callable[[], float]) -> float:
    return min(run() for _ in range(ROUNDS)) / REPEATS * 1e6


def main(arguments: list[str]) -> None:
    found = {}
    for name, mark in ROWS:
        if not (CAPTURES / name / "upstream.sse").exists():
            continue
        case = load(CAPTURES / name)
        if case.profile.dialect not in ADAPTERS:
            continue
        length = len(next(frame for frame in frames(case) if mark in frame))
        single, grouped = measured(case, mark)
        found[name] = {"bytes": length, "us_per_chunk": single, "us_per_chunk_of_16": grouped}
    if arguments == ["--json"]:
        sys.stdout.write(json.dumps(found))
        return
    sys.stdout.write(f"{'capture':<44}{'bytes':>7}{'us per chunk':>14}{'16 in a read':>14}\n")
    for name, figures in found.items():
        size, single, grouped = figures.values()
        sys.stdout.write(f"{name:<44}{size:>7}{single:>14.2f}{grouped:>14.2f}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
