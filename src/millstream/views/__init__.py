"""What the faces show: one shape for `--json`, the terminal and the console."""
