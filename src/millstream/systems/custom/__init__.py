"""Sources and sinks that users write themselves."""
