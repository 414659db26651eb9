"""Real servers for the tests: PostgreSQL, Valkey, the bridge itself, and an upstream that follows a script."""
