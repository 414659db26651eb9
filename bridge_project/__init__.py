"""The Django project: settings, URLs, ASGI, Celery, and the process tree that `manage.py up` starts."""
