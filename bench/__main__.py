"""Run every measurement."""

from bench.frame import main

main()
