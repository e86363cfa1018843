//! Identity, API keys, workspaces and authorisation.
