"""Plans as files that start them: one renderer per tool, all options checked against the tools' own."""
