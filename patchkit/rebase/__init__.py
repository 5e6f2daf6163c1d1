"""A series carried to another release: planned in memory and shown before anything moves."""
