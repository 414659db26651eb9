#!/bin/sh
# Names the Python to install into: `python3`, or the system's own where that is the faster build. Distributions build
# theirs with optimisations, pyenv and a plain ./configure do not: a request then costs up to a sixth more.
system=/usr/bin/python3
fit='import ensurepip, ssl, sqlite3, sys; sys.exit(sys.version_info < (3, 11))'
plain='import sys, sysconfig; sys.exit(sys.executable.startswith("/usr/bin/") or "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""))'
if python3 -c "$plain" 2>/dev/null && $system -c "$fit" 2>/dev/null; then echo $system; else echo python3; fi
