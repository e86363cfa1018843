//! What whoever starts the service decides.

use std::path::PathBuf;

use tg_storage::Durability;

tg_settings::options! {
    /// Options of the identity service.
    pub struct Options {
        /// Users of one home workspace at most.
        workspace_users: usize = 10_000, Whole(1..=100_000);
    }
    given {
        /// Who is let in.
        auth_mode: AuthMode,
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
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
