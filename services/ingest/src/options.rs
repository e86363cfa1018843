//! What whoever starts the service decides.

use std::path::PathBuf;

use crate::decode::Limits;

/// How documents are taken apart.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that runs as the child: [`crate::decode::run`] behind `args` and the format's name.
    pub program: PathBuf,
    /// Arguments before the format's name, which is followed by the limits.
    pub args: Vec<String>,
    /// Bounds of one document.
    pub limits: Limits,
    /// Most children at once that one workspace may have.
    pub children: usize,
    /// Children besides, for workspaces that have none: one that reads slow documents does not stop the others.
    pub kept: usize,
}

impl Options {
    /// This program again, with a hidden subcommand.
    pub fn of_this_program(subcommand: &str) -> Self {
        Self {
            program: this_program(),
            args: vec![subcommand.to_owned()],
            limits: Limits::default(),
            children: 2,
            kept: 2,
        }
    }
}

/// On Linux by the name that stays right when the file was replaced.
fn this_program() -> PathBuf {
    let itself = PathBuf::from("/proc/self/exe");
    if itself.exists() {
        return itself;
    }
    std::env::current_exe().unwrap_or(itself)
}
