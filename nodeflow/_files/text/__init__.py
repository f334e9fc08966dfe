"""Text files of columns: numbers and words, whole or in pieces, with the line of an error."""
