"""The machine at hand: what its tools print (`prints`), which chips that means (`machine`), how to ask (`asking`)."""
