"""Keyed state in Python: many keys to a bucket, so that Spark is asked once for all of them."""
