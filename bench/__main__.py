"""Run every measurement."""

from bench import frame, query

query.main()
frame.main()
