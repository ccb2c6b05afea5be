"""Made-up records."""
