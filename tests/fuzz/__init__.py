"""Coverage-guided fuzzing of what reads a stranger's bytes; the corpus it left runs in CI."""
