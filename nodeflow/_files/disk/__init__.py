"""Folders of arrays on disk: a manifest with version, sizes, types and checksums; written whole or
not at all.

``folders`` writes and locks them, ``manifest`` describes them, ``checked`` compares contents with
what it says. ``arrays`` makes and maps ``.npy`` files, ``streams`` writes columns piece by piece,
``texts`` stores lists of texts.
"""
