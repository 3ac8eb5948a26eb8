"""The face for agents: the verbs as tools of the Model Context Protocol, short answers first."""
