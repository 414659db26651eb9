"""`manage.py up` as a subprocess: what it prints, which processes it has, how it ends."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.servers.bridge import PROJECT, clean_environment
from tests.servers.keeper import kept
from tests.servers.ports import free_port, wait_until

LAST_LINE = "Ctrl-C stops it.\n"


class Tree:
    def __init__(self, home: Path, environment: Mapping[str, str] | None = None, port: int | None = None) -> None:
        self.port = port or free_port()
        self._environment = clean_environment(home, self.port) | dict(environment or {})
        self._errors = home.with_name(f"{home.name}-{self.port}.errors")

    def start(self) -> str:
        """What it printed until it served."""
        self._open()
        assert self.process.stdout is not None
        printed = ""
        for line in self.process.stdout:
            printed += line
            if line == LAST_LINE:
                return printed
        raise AssertionError(f"`up` ended with {self.process.wait()}: {self.errors()}")

    def fail(self) -> tuple[int, str]:
        """Exit code and standard error of a start that is expected to fail."""
        self._open()
        output, _ = self.process.communicate(timeout=60)
        assert output == ""
        return self.process.returncode, self.errors()

    def processes(self) -> list[psutil.Process]:
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def wait_for_processes(self, count: int) -> list[psutil.Process]:
        wait_until(lambda: len(self.processes()) == count, f"{count} processes")
        return self.processes()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Also after its death: then it only lets go of the pipe."""
        self.process.send_signal(number)
        self.process.communicate(timeout=40)
        return self.process.returncode

    def errors(self) -> str:
        return self._errors.read_text(encoding="utf-8")

    def _open(self) -> None:
        # A file, since nobody reads a pipe while the tree serves.
        with self._errors.open("wb") as errors:
            command = [sys.executable, "manage.py", "up"]
            self.process = subprocess.Popen(
                command, cwd=PROJECT, env=self._environment, text=True, stdout=subprocess.PIPE, stderr=errors
            )
        kept(self.process)
