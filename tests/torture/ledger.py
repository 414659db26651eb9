"""How a test of a property is sized, and how it reports.

    @pytest.mark.proves("kill")
    def test_killed_at_any_byte(proof: Proof, trials: Trials) -> None:
        for number in range(trials(2000, 30)):
            with proof.trial(f"kill {number}"):
                assert ...

Trials that fail are counted and named, the others go on; the test fails at its end. Without SCALE a test has its small
size, that of the suite; `make torture` sets it. TORTURE_LEDGER names a file that gets one JSON line for each test.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.torture.properties import PROPERTIES

SCALE = float(os.environ["SCALE"]) if os.environ.get("SCALE") else None  # None: the suite
ONLY = [name for name in os.environ.get("TORTURE_ONLY", "").replace(",", " ").split() if name]
DETAILS = 20  # failures that are told; all are counted
LONG = 12_000  # characters of one: with what the bridge's own log says of it
HOURS = 12 * 3600

Trials = Callable[[float, float], int]


class Proof:
    """What one test found out about one property. Threads may share it."""

    def __init__(self, name: str, test: str) -> None:
        assert name in PROPERTIES, f"{name} is not in tests/torture/properties.py"
        self.name = name
        self.test = test
        self.tolerance = 0.0  # share of trials that may fail
        self.trials = 0
        self.failures = 0
        self.details: list[str] = []
        self.figures: dict[str, float] = {}  # what was measured on the way
        self._lock = threading.Lock()
        self._began = time.monotonic()

    @contextmanager
    def trial(self, detail: object) -> Iterator[None]:
        """One trial; what it asserts in vain is a failure of this one. Only then is the detail put into words."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever went wrong, it is told, and the other trials go on
            self.failed(f"{detail}: {type(error).__name__}: {error}"[:LONG])
        else:
            self.passed()

    def passed(self, count: int = 1) -> None:
        with self._lock:
            self.trials += count

    def failed(self, detail: str) -> None:
        with self._lock:
            self.trials += 1
            self.failures += 1
            if len(self.details) < DETAILS:
                self.details.append(detail)

    def worst(self, name: str, value: float) -> None:
        """A measured figure; the greatest is kept."""
        with self._lock:
            self.figures[name] = max(value, self.figures.get(name, value))

    def check(self) -> None:
        told = "\n".join(self.details)
        assert self.failures <= self.tolerance * self.trials, f"{self.failures} of {self.trials} trials failed:\n{told}"

    def write(self) -> None:
        if "TORTURE_LEDGER" not in os.environ:
            return
        line = {
            "property": self.name,
            "test": self.test,
            "trials": self.trials,
            "failures": self.failures,
            "tolerance": self.tolerance,
            "seconds": round(time.monotonic() - self._began, 1),
            "figures": self.figures,
            "details": self.details,
        }
        with Path(os.environ["TORTURE_LEDGER"]).open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps(line) + "\n")


@pytest.fixture
def proof(request: pytest.FixtureRequest) -> Proof:
    mark = request.node.get_closest_marker("proves")
    assert mark is not None, "a test with a proof says what it proves"
    return Proof(mark.args[0], request.node.nodeid)


@pytest.fixture(scope="session")
def trials() -> Trials:
    """How many: of the full size what SCALE says, or the small size in the suite."""
    return sized


def sized(full: float, small: float) -> int:
    return int(small) if SCALE is None else max(1, round(full * SCALE))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    proof = pyfuncitem.funcargs.get("proof")
    if not isinstance(proof, Proof):
        return (yield)
    try:
        outcome = yield
    except (Exception, pytest.fail.Exception) as error:
        for detail in proof.details:
            error.add_note(detail)
        proof.failed(f"{pyfuncitem.name}: {error}"[:2000])
        raise
    finally:
        proof.write()
    proof.check()
    return outcome


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In full size the suite's limit of time is not theirs; TORTURE_ONLY keeps the properties that it names."""
    marked = {item: mark.args[0] for item in items if (mark := item.get_closest_marker("proves"))}
    if SCALE is not None:
        for item in marked:
            item.add_marker(pytest.mark.timeout(HOURS), append=False)
    if ONLY:
        config.hook.pytest_deselected(items=[item for item in items if marked.get(item) not in ONLY])
        items[:] = [item for item in items if marked.get(item) in ONLY]
