"""The Model Context Protocol: a core without I/O (protocol) and the transport that carries it (stdio)."""
