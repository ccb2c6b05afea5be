"""Run every measurement."""

from bench import first, frame, latency, query, stores, topic, verbs

verbs.main()
query.main()
stores.main()
topic.main()
first.main()
frame.main()
latency.main()
