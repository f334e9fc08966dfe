"""Compiled loops: numpy arrays in, numpy arrays out; no torch, no classes, no checks of what reaches them."""
