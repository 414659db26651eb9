"""How many rows the purge deletes at once."""

from conversations.deleting import LEAST, MOST, PACES, Pieces


def test_the_first_piece_is_small_and_the_next_ones_follow_the_time_that_it_took() -> None:
    pieces = Pieces(hurried=True)
    assert pieces.size("turns") == PACES["sqlite"].first
    assert PACES["postgresql"].first == LEAST  # there a first piece may wait for the disk
    seconds = PACES["sqlite"].seconds
    pieces.took("turns", 200, seconds / 10)
    assert pieces.size("turns") == 400  # never more than twice as many
    pieces.took("turns", 400, seconds * 2)
    assert pieces.size("turns") == 200
    pieces.took("turns", 200, seconds * 100)
    assert pieces.size("turns") == 50  # nor less than a quarter
    pieces.took("turns", 50, seconds * 100)
    assert pieces.size("turns") == LEAST
    pieces.took("turns", 0, seconds * 100)  # a last piece tells nothing
    for _ in range(10):
        pieces.took("turns", pieces.size("turns"), 0.0)
    assert pieces.size("turns") == MOST
    assert pieces.size("messages") == PACES["sqlite"].first
    assert (pieces.longest, pieces.slowest) == (seconds * 100, "turns")
