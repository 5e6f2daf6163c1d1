"""Pure functions on bytes: parse, place, apply, merge, explain. No files, no git, no clock."""
