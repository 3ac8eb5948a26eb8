"""The web face: an HTTP API of the verbs and the page that people use, served from this machine."""
