"""The command line: one module a verb. Arguments in, tables or JSON out, nothing else."""
