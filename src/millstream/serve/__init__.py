"""Answers kept in stores: the fenced write, which each system implements, and look-ups."""
