"""Draws in operations of torch, on any device: what ``_kernels`` has in compiled loops, bit for
bit.

Draws are integer arithmetic of a counter-based generator, so two forms of a loop give the same
numbers. A few primitives, each tied to its compiled loop by a test in ``tests/core/in_torch``, carry all
draws: ``bits`` (the generator, and bounded integers), ``ragged`` (rows of several lengths),
``kept`` (edges that a rule keeps), ``numbering`` (ids in order of first appearance). On them stand
the draws, a file each with the name of the file of loops, such as ``uniform``.

Samplers do not choose between the forms: ``_core/edges/forms.py`` does, in one place, by where the edge
arrays lie.

Rules: integers only, so that no sum depends on an order; nothing reads the generators of torch; a
size that torch must know is read once, and its line says ``waits``, because a device is waited for
there. Entries are read by ``index_select``, which is ten times as fast as an index in brackets on a
CPU.
"""
