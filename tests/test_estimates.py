"""The bytes that a request's tokens are guessed from."""

import pytest

from conversations.estimates import FILE_BYTES, LARGE, PIECE, SHORTEST_FILE, weight

WORDS = b"So many words. " * (LARGE // 15 + 1)


@pytest.mark.parametrize("mark", [b"data:image/png;base64,", b'"data":"'])
@pytest.mark.parametrize("before", [0, *range(PIECE - 30, PIECE + 2), 2 * PIECE])
def test_a_file_counts_for_what_models_make_of_one_wherever_it_is(mark: bytes, before: int) -> None:
    said = b" " * before + mark
    for size in (SHORTEST_FILE, PIECE, 3 * PIECE + 1):
        assert weight(said + b"A" * size + b'" ' + WORDS) == len(said) + FILE_BYTES + len(b'" ' + WORDS)


def test_what_is_short_or_no_file_counts_as_it_is() -> None:
    for body in (
        WORDS,
        b"A" * LARGE,
        WORDS + b"base64," + b"A" * (SHORTEST_FILE - 1),
        WORDS + b'"data":"' + WORDS,
        b"base64," + b"A" * SHORTEST_FILE,
    ):
        assert weight(body) == len(body)


def test_every_file_is_found() -> None:
    files = b"".join(b'"data":"%b",' % (b"Zm9v" * size) for size in (500, 1, 100_000, 500))
    assert weight(files + WORDS) == len(files + WORDS) - 4 * 101_000 + 3 * FILE_BYTES
