"""Folders of arrays on disk: a manifest with version, sizes, types and checksums; written whole or not at all."""
