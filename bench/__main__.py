"""Run every measurement."""

from bench import first, frame, jdbc, latency, query, skew, stores, topic, verbs

verbs.main()
query.main()
stores.main()
topic.main()
jdbc.main()
skew.main()
first.main()
frame.main()
latency.main()
