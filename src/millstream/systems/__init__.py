"""The outside world: one package per system, with its settings, source, sink and courier."""
