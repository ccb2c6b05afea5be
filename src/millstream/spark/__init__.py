"""The session: which Java, which jars and which settings Spark runs with."""
