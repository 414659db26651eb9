"""One web process under cProfile, from SIGUSR1 until SIGTERM: `python -m bench.profiled FILE`."""

import cProfile
import signal
import sys

from bridge_project.up.web import serve

if __name__ == "__main__":
    profile = cProfile.Profile()
    signal.signal(signal.SIGUSR1, lambda *_: profile.enable())
    # uvicorn drains and then raises the signal again; this time it only ends the serving.
    signal.signal(signal.SIGTERM, lambda *_: None)
    serve()
    profile.disable()
    profile.dump_stats(sys.argv[1])
