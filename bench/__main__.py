"""Run every measurement."""

from bench import (
    dstream,
    fence,
    first,
    frame,
    growth,
    jdbc,
    joins,
    latency,
    lookup,
    patterns,
    posts,
    proof,
    query,
    sketch,
    skew,
    state,
    stores,
    text,
    topic,
    update,
    verbs,
)

verbs.main()
query.main()
update.main()
stores.main()
fence.main()
lookup.main()
topic.main()
posts.main()
jdbc.main()
proof.main()
skew.main()
sketch.main()
state.main()
patterns.main()
joins.main()
growth.main()
first.main()
frame.main()
text.main()
dstream.main()
latency.main()
