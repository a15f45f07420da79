"""One kernel mechanism per file: what it needs as a frozen value (made by `planning`), and `apply` (in the worker).

`apply` raises OSError and returns the facts that it read back from the kernel, for the attestation. The order of the
steps, and in which process each is applied, stands in sandbox.plan.
"""
