"""The machine at hand: what its tools print (`prints`), which chips that means (`machine`), how it is asked (`asking`)."""
