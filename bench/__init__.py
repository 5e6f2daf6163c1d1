"""What applying costs, side by side with the peers: `python -m bench`."""
