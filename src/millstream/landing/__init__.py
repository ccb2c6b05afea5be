"""Landing: records are decoded, judged and kept, each with its verdict."""
