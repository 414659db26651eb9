"""`manage.py up`: starts the web processes, then the background process, and keeps them running: who dies is started
again, and so is a web process whose event loop stands still.

It lives as long as the server, so it stays small: everything that needs Django happens in its children. They all hold
the reading end of a pipe, the lifeline: when the supervisor dies, however it dies, they see its end and stop.
"""

import os
import select
import signal
import socket
import sys
import time

from bridge_project import settings
from bridge_project.up import announcement, board
from bridge_project.up.child import Child
from bridge_project.up.claims import claim_home, claim_port
from bridge_project.up.errors import StartError
from bridge_project.up.pulse import Pulse

# Open streams get 20 s to end by themselves (web.py); whoever is still there after this is killed.
STOP_SECONDS = 25.0


def run() -> int:
    try:
        with claim_home(settings.BRIDGE_HOME), claim_port(settings.HOST, settings.PORT) as listener:
            return Supervisor(listener, settings.WEB_WORKERS, settings.HANG_SECONDS).run()
    except StartError as error:
        sys.stderr.write(f"toolbridge: {error}\n")
        return 1


class Supervisor:
    def __init__(self, listener: socket.socket, web_processes: int, hang_seconds: float) -> None:
        self._listener = listener
        lifeline, self._life = os.pipe()
        self._board = board.made(web_processes)
        shared = {"socket": listener.fileno(), "lifeline": lifeline, "board": self._board.fileno()}
        self._web = [Child("bridge_project.up.web", **shared) for _ in range(web_processes)]
        self._background = Child("bridge_project.up.background", lifeline=lifeline)
        self._pulse = Pulse(self._board, hang_seconds)
        self._next_look = 0.0
        self._due: dict[Child, float] = {}
        self._interrupts = 0
        self._stopping = False
        # Signals wake the loop through this pair.
        self._wake, self._waker = socket.socketpair()

    def run(self) -> int:
        self._hear_signals()
        try:
            if not self._first_start():
                return 0 if self._stopping else 1
            self._watch()
        finally:
            self._stop()
        return 0

    def _hear_signals(self) -> None:
        # Python refuses a wake-up descriptor that could block.
        self._waker.setblocking(False)  # noqa: FBT003 - the socket's own signature
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGINT, self._on_stop)

    def _on_stop(self, number: int, _: object) -> None:
        self._stopping = True
        self._interrupts += number == signal.SIGINT

    def _first_start(self) -> bool:
        """The first web process alone, so that nothing competes with it; the others when it serves."""
        ready, announce = os.pipe()
        self._web[0].start(announce=announce)
        os.close(announce)
        with open(ready, "rb") as answer:  # noqa: PTH123 - a descriptor has no path
            self._sleep(None, answer.fileno())
            # Empty: the process ended without having served; it has said why.
            if self._stopping or not (announced := answer.read()):
                return False
        sys.stdout.write(announcement.banner(announced))
        sys.stdout.flush()
        for child in (*self._web[1:], self._background):
            child.start()
        return True

    def _watch(self) -> None:
        while not self._stopping:
            for child in (*self._web, self._background):
                if (code := child.bury()) is not None:
                    self._due[child] = time.monotonic() + child.pause
                    sys.stderr.write(f"toolbridge: {child.module} ended with {code}; next start in {child.pause} s\n")
            for child in [child for child, due in self._due.items() if due <= time.monotonic()]:
                del self._due[child]
                child.start()
            if self._next_look <= time.monotonic():
                self._next_look = time.monotonic() + self._pulse.pause
                self._end_who_hangs()
            self._sleep(min((self._next_look, *self._due.values())))

    def _end_who_hangs(self) -> None:
        """First it may say where it stands; if it cannot even do that, it is killed with the next look."""
        still = self._pulse.look()
        for child in self._web:
            if (over := still.get(child.pid)) is not None:
                took = f"{self._pulse.seconds:g} s"
                sys.stderr.write(f"toolbridge: {child.module} {child.pid} has stood still for {took}; it is ended\n")
                child.signal(signal.SIGKILL if over else signal.SIGABRT)

    def _sleep(self, until: float | None, *also: int) -> None:
        """Until a signal, data on one of `also`, or the time."""
        timeout = None if until is None else max(0.0, until - time.monotonic())
        readable, _, _ = select.select([self._wake.fileno(), *also], [], [], timeout)
        if self._wake.fileno() in readable:
            self._wake.recv(4096)
            # SIGCHLD says that a child ended; whoever waits for its announcement sees the end of the pipe too.
            if also and not self._stopping and not set(also) & set(readable):
                self._sleep(until, *also)

    def _stop(self) -> None:
        # Nobody accepts any more: a new client is refused at once instead of waiting in the queue.
        self._listener.close()
        children = (*self._web, self._background)
        for child in children:
            child.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while any(child.running for child in children) and time.monotonic() < deadline and self._interrupts < 2:
            self._sleep(deadline)
        for child in children:
            if child.running:
                child.signal(signal.SIGKILL)
