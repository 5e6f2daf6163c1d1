"""patchkit: patch series for pinned vLLM releases, applied exactly and checked for drift."""

__version__ = "0.1.0"
