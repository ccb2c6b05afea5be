"""What is happening: the only room that starts, stops and restarts queries."""
