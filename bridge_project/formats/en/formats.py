"""Times to the second, with their zone."""

DATETIME_FORMAT = "Y-m-d H:i:s T"
DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
