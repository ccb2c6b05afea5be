"""Run every measurement."""

from bench import frame, verbs

verbs.main()
frame.main()
