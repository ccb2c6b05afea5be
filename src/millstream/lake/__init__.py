"""The inside world: landing and verdicts, Delta tables, expectations, time travel."""
