"""The memo of pure functions."""

from translation.memo import ENTRY, Memo


def test_work_is_done_once() -> None:
    memo: Memo[int] = Memo(budget=10_000, largest=50)
    calls: list[int] = []

    def work() -> int:
        calls.append(1)
        return 7

    assert [memo.get(b"key", work), memo.get(b"key", work)] == [7, 7]
    assert len(calls) == 1


class Unhashed(bytes):
    """To look for megabytes is to read them, for nothing."""

    def __hash__(self) -> int:
        raise AssertionError


def test_what_is_too_large_is_neither_looked_for_nor_kept() -> None:
    memo: Memo[int] = Memo(budget=10_000, largest=3)
    values = iter((1, 2))
    assert [memo.get(Unhashed(b"large"), lambda: next(values)) for _ in range(2)] == [1, 2]


def test_what_was_not_used_since_goes_first() -> None:
    memo: Memo[str] = Memo(budget=4 * (ENTRY + 4), largest=8)
    memo.get(b"aaaa", lambda: "a")
    memo.get(b"bbbb", lambda: "b")
    memo.get(b"cccc", lambda: "c")  # a and b are the older generation now
    assert memo.get(b"aaaa", lambda: "gone") == "a"
    memo.get(b"dddd", lambda: "d")
    assert memo.get(b"aaaa", lambda: "gone") == "a"
    assert memo.get(b"bbbb", lambda: "gone") == "gone"
