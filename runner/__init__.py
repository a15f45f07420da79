"""The front and the command line: MCP, policy, redaction. It decides what is asked for; `sandbox` enforces it."""

__version__ = "0.1.0"
