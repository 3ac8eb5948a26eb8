"""What people and programs see: records, tables in four formats, JSON with a schema version."""
