//! What whoever starts the service decides.

use std::path::PathBuf;

use tg_storage::Durability;

/// Options of the identity service.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Who is let in.
    pub auth_mode: AuthMode,
    /// Directory of the service's files.
    pub data_dir: PathBuf,
    /// What a committed write survives.
    pub durability: Durability,
}

/// Who is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthMode {
    /// Everybody, as one administrator. For a machine of one's own.
    #[default]
    None,
    /// Holders of API keys, as far as their roles go.
    Iam,
}

impl AuthMode {
    /// As written in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Iam => "iam",
        }
    }

    /// Reads the settings' word.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            "iam" => Some(Self::Iam),
            _ => None,
        }
    }
}
