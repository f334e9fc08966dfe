"""What every room uses: checks of arguments, immutable objects, names of types."""
