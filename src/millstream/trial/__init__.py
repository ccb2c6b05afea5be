"""Answers computed without deploying them: batch, preview, backtest."""
