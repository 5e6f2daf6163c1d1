"""A static site of a project's series: the patches, the releases, the proofs."""
