"""Where a patched tree goes: a work tree, a folder, an installed package, a bundle."""
