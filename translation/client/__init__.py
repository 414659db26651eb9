"""The client's dialect: Anthropic's Messages API, read (`parse`), kept (`stored`) and written (`render`)."""
