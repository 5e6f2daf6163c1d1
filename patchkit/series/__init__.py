"""Formats: quilt series, patch header, pins.toml, lock, and the canonical writer."""
