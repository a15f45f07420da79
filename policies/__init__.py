"""Policies: what the operator allows. Read and checked once at start-up, in the front; runs nothing."""
