"""What templates of the admin need beyond Django's own filters."""
