"""Tables of other Millstream apps."""
