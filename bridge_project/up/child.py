"""One supervised process: started, signalled, and started again after a pause when it dies."""

import os
import signal
import subprocess
import sys
import time

from bridge_project.settings import BASE_DIR

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
# A process that lived this long had started well; its death is a new story.
STEADY_SECONDS = 60.0


class Child:
    def __init__(self, module: str, **descriptors: int) -> None:
        """`descriptors` are inherited; the module gets each number as an option of that name."""
        self.module = module
        self.pause = 0.0
        self._descriptors = descriptors
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0

    def start(self, **more: int) -> None:
        descriptors = self._descriptors | more
        options = [f"--{name}={number}" for name, number in descriptors.items()]
        paths = (str(BASE_DIR), os.environ.get("PYTHONPATH"))
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", self.module, *options],
            stdin=subprocess.DEVNULL,
            pass_fds=tuple(descriptors.values()),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            # Ctrl-C reaches the terminal's whole process group; only the supervisor is to hear it.
            process_group=0,
        )

    def bury(self) -> int | None:
        """The exit code, once, of a process that has died; `pause` then says how long to wait before the next start."""
        code = self._process.poll() if self._process is not None else None
        if code is not None:
            steady = time.monotonic() - self._started > STEADY_SECONDS
            self.pause = FIRST_PAUSE if steady else min(max(self.pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            self._process = None
        return code

    @property
    def pid(self) -> int:
        """0 while there is no process."""
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
