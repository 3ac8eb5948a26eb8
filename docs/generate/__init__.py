"""The generated parts of the documentation: transcripts, tables, references, stories and checked claims."""
