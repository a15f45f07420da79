"""The cage: what one call may do, enforced by the kernel. Knows nothing of MCP or of policy files."""
