"""A machine whose clock is wrong: a small library, preloaded, moves the real time of a process and nothing else."""

import shutil
import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long skew(void) { const char *s = getenv("CLOCK_SKEW"); return s ? atol(s) : 0; }
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += skew();
  return result;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  now->tv_sec = found.tv_sec; now->tv_usec = found.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *place) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (place) *place = found.tv_sec;
  return found.tv_sec;
}
"""


def skewed(folder: Path, seconds: int) -> dict[str, str]:
    """The environment of a process whose clock is off by so much; none where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    library = folder / "clock.so"
    if not library.exists():
        source = folder / "clock.c"
        source.write_text(SOURCE, encoding="utf-8")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_SKEW": str(seconds)}
