"""What a process has freed is the system's again."""

import subprocess
import sys

import pytest

from conversations.heap import STATM
from tests.servers.bridge import PROJECT

FLOOD = """
import sys
from conversations.heap import STATM, Heap
def resident():
    return int(STATM.read_text().split()[1]) * 4096 // 2**20
heap, before = Heap(), resident()
answers, others = [], []
for _ in range(4000):
    answers.append(bytearray(50_000))
    others.append(bytearray(2_000))  # what comes meanwhile and stays lies between them
heap.give_back()
flooded = resident()
del answers
heap.give_back()
print(before, flooded, resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there is it told")
def test_after_a_flood_a_process_is_about_as_small_as_before() -> None:
    assert STATM.exists()
    done = subprocess.run([sys.executable, "-c", FLOOD], cwd=PROJECT, capture_output=True, text=True, check=True)
    before, flooded, after = map(int, done.stdout.split())
    assert flooded > before + 150
    assert after < before + 50
