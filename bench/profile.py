"""`make profile`: where the event loop's time goes in one scenario (`--scenario`, `--sort`).

The writer's thread is not in it: what it costs is the difference to `BRIDGE_STORAGE=off` in `make bench`.
"""

import argparse
import os
import pstats
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import cast

from bench import machine, scenarios, targets
from bench.load import KEY
from bench.targets import HOME, MESSAGES, PROJECT, Running
from tests.servers.bridge import clean_environment
from tests.servers.ports import free_port

STATISTICS = HOME / "profile.out"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--scenario", default="small, 32 clients", choices=[item.name for item in scenarios.SCENARIOS])
    parser.add_argument("--sort", default="tottime", choices=["tottime", "cumulative", "ncalls"])
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args(arguments)
    chosen = next(item for item in scenarios.SCENARIOS if item.name == options.scenario)
    HOME.mkdir(parents=True, exist_ok=True)
    home, port = HOME / "profile", free_port()
    shutil.rmtree(home, ignore_errors=True)
    with targets.fake_upstream() as upstream:
        given = {
            "BRIDGE_API_KEYS": KEY,
            "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream.port}/v1",
            "MODEL_MAP_DEFAULT": "openai/fake-model",
        }
        environment = clean_environment(home, port) | given
        subprocess.run([sys.executable, "manage.py", "prepare"], cwd=PROJECT, env=environment, check=True)
        command = [sys.executable, "-m", "bench.profiled", str(STATISTICS)]
        with targets.launched(command, environment, machine.SERVER, HOME / "profile.log") as pid:
            targets.wait(port, MESSAGES, pid)
            running = Running(port, MESSAGES, b"message_stop", pid)
            scenarios.warm(running)
            os.kill(pid, signal.SIGUSR1)
            figures = scenarios.measure(running, chosen, upstream.port, options.scale)
    statistics = pstats.Stats(str(STATISTICS), stream=sys.stdout)
    statistics.strip_dirs().sort_stats(options.sort)
    cast("Callable[[int], object]", statistics.print_stats)(options.lines)
    sys.stdout.write(
        f"{options.scenario}: {figures['requests']:.0f} requests, profiled: the times are longer than real ones\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
