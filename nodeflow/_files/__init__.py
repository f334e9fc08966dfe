"""Files: folders of arrays, stores whose rows change, and tables of text.

- ``disk``: folders of arrays with a manifest and checksums, written whole or not at all.
- ``store``: arrays whose rows change by commits, in memory or in files; it stands on ``disk``.
- ``text``: readers of tables of numbers and words, piece by piece.
"""
