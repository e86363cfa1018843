//! What is wrong with a blueprint, and where. A fault never names anything that the blueprint does not.

use serde::Serialize;

/// Faults listed at most; a hostile blueprint could have any number.
pub const MAX_FAULTS: usize = 50;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValidationError {
    /// Where, as a JSON pointer into the definition, e.g. `/flow/chunker:{id}/topics/input`.
    pub path: String,
    /// What.
    pub message: String,
}

/// Collects faults up to [`MAX_FAULTS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// Adds a fault.
    pub fn add(&mut self, path: &Path, message: impl Into<String>) {
        if self.0.len() < MAX_FAULTS {
            self.0.push(ValidationError {
                path: path.to_string(),
                message: message.into(),
            });
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn list(&self) -> &[ValidationError] {
        &self.0
    }

    /// One text for people: `path: message; path: message`.
    pub fn text(&self) -> String {
        let parts: Vec<_> = self
            .0
            .iter()
            .map(|f| format!("{}: {}", f.path, f.message))
            .collect();
        parts.join("; ")
    }
}

/// A JSON pointer that grows downwards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// The whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// A step down.
    pub fn at(&self, key: &str) -> Self {
        let shown: String = key.chars().filter(|c| !c.is_control()).take(120).collect();
        Self(format!(
            "{}/{}",
            self.0,
            shown.replace('~', "~0").replace('/', "~1")
        ))
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}
