"""Taking a series elsewhere, and seeing how it hangs together."""
