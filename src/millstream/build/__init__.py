"""From declared functions to DataFrames, and what is known of them."""
