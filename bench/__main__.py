"""Run every measurement."""

from bench import first, frame, latency, query, stores, verbs

verbs.main()
query.main()
stores.main()
first.main()
frame.main()
latency.main()
