//! What whoever starts the service decides.

/// Options of the prompt service.
#[derive(Debug, Clone)]
pub struct Options {
    /// Most workspaces whose prompts are kept ready; those of another are read again when they are asked for.
    pub workspaces: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { workspaces: 256 }
    }
}
