"""Run every measurement."""

from bench import (
    fence,
    first,
    frame,
    growth,
    jdbc,
    latency,
    lookup,
    patterns,
    proof,
    query,
    skew,
    state,
    stores,
    topic,
    verbs,
)

verbs.main()
query.main()
stores.main()
fence.main()
lookup.main()
topic.main()
jdbc.main()
proof.main()
skew.main()
state.main()
patterns.main()
growth.main()
first.main()
frame.main()
latency.main()
