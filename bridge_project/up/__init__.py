"""The process tree of `manage.py up`: a supervisor without Django, web processes, one background process."""
