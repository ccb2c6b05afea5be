"""Records posted over HTTP."""
