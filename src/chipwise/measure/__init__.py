"""The machine at hand: what its tools print (`prints`), which chips that means (`machine`), how to ask (`asking`);
its operators timed (`probe`, `timed`), a module run on it (`torch_model`), an endpoint under load (`endpoint`)."""
