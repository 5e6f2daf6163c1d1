"""Every writing verb stopped at its writes: by a signal, by a full or broken disk."""
