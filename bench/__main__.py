"""Run every measurement."""

from bench import frame, latency, query, verbs

verbs.main()
query.main()
frame.main()
latency.main()
