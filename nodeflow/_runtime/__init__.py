"""The process: its threads, and memory that results share. All state of the process lives here."""
