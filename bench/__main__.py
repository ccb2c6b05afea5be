"""Run every measurement."""

from bench import frame, query, verbs

verbs.main()
query.main()
frame.main()
