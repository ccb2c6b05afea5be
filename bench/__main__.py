"""Run every measurement."""

from bench import first, frame, latency, query, verbs

verbs.main()
query.main()
first.main()
frame.main()
latency.main()
