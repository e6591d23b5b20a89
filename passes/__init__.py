"""Language to language: every rewrite that knows the machine only through its Target."""
