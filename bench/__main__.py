"""Run every measurement."""

from bench import first, frame, jdbc, latency, query, stores, topic, verbs

verbs.main()
query.main()
stores.main()
topic.main()
jdbc.main()
first.main()
frame.main()
latency.main()
