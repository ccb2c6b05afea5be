"""The columns of the table of a model, and the kinds of its rows."""

KIND, LEARNT, BYTES, DIGEST, LIBRARY = "_kind", "_learnt", "_model", "_digest", "_made_with"
NAME, METRICS, RECENT = "_version", "_metrics", "_recent"
PREDICTION, SCORE, DRIFT = "prediction", "score", "_drift"
OWN = (KIND, PREDICTION, SCORE, DRIFT, LEARNT, NAME, BYTES, DIGEST, LIBRARY, METRICS, RECENT)
"""The columns that a model's table has beside those of the rows."""

SCORED, VERSION, ROLLED_BACK = "scored", "version", "rolled_back"
"""The kinds of rows of a model's table."""
