"""Loops over rows of features: sums, extremes, softmax, gathers."""
