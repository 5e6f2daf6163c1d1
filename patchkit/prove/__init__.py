"""Proofs: a patch's own tests, red on the tree before it and green on the patched tree.

A patch can apply and be useless, or apply and be wrong: only its proof tells. Proofs are code of
the series and are run; no other capability but build runs any.
"""
