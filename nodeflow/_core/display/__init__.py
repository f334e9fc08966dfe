"""Displays of objects: HTML in notebooks, and drawings on matplotlib axes.

Strings, numbers and lists of points come in. No file here knows a graph or a NodeFlow: their rooms
describe them.
"""
