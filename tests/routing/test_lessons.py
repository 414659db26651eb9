"""What a refusal taught, while the rows that it belongs to are read, written and deleted."""

import msgspec

from conversations import conf
from conversations.routing import Router
from conversations.store.routes import Configuration, LearnedRow
from translation.remedies import Remedy

LESSON = Remedy("", drop=("temperature",))
STORED = LearnedRow("demo", "picky", msgspec.json.encode(LESSON).decode())
EARLIER, LATER = Configuration(), Configuration(learned=(STORED,))


def taught() -> Router:
    router = Router(conf.current(), "http://127.0.0.1:1")
    router.learn(router.resolve("demo/picky").target, LESSON)
    return router


def knows(router: Router) -> int:
    """How often: once is enough."""
    return router.resolve("demo/picky").target.profile.drop_params.count("temperature")


def test_rows_that_were_read_before_a_lesson_was_stored_do_not_take_it_back() -> None:
    router = taught()
    router.load(EARLIER)
    router.load(EARLIER)
    assert knows(router) == 1
    router.load(LATER)
    assert knows(router) == 1


def test_a_lesson_that_an_operator_deleted_is_forgotten_by_the_process_that_learned_it() -> None:
    router = taught()
    router.load(LATER)
    router.load(EARLIER)
    assert knows(router) == 0


def test_a_lesson_is_learned_once_however_many_requests_were_refused() -> None:
    router = taught()
    router.learn(router.resolve("demo/picky").target, LESSON)
    assert knows(router) == 1
