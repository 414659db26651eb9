"""What reading JSON that others wrote may raise: msgspec has an error of its own for strings that are not UTF-8."""

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
