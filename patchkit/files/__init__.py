"""The one place that opens, writes, renames and locks files. Standard library only.

Every name below a root is asked of `engine.paths` first, and no symbolic link on the way is
followed: a root is walked component by component with O_NOFOLLOW.
"""
