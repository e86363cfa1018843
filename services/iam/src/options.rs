//! What whoever starts the service decides.

use std::path::PathBuf;

use tg_settings::SettingError;
use tg_storage::Durability;

use crate::oidc::OidcOptions;
use crate::store::AuditBounds;

tg_settings::options! {
    /// Options of the identity service.
    pub struct Options {
        /// Users of one home workspace at most.
        workspace_users: usize = 10_000, Whole(1..=100_000);
        /// Days for which the audit is kept.
        audit_days: usize = 365, Whole(1..=36_500);
        /// Days for which it is kept who read what; 0: that is not kept at all.
        audit_read_days: usize = 30, Whole(0..=36_500);
        /// Audit of one workspace, in MiB: of changes, of logins, of what was allowed and of what was read so much each. The
        /// oldest makes room.
        audit_workspace_mb: usize = 16, Whole(1..=65_536);
        /// The same of all refusals, of known callers and of strangers so much each; within, whoever has most makes room.
        audit_refused_mb: usize = 16, Whole(1..=65_536);
        /// The whole audit, in MiB; beyond, what was only read makes room first, and changes last.
        audit_mb: usize = 512, Whole(8..=1 << 20);
    }
    sections {
        /// Logins by tokens of an external issuer.
        oidc: OidcOptions,
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

impl Options {
    /// What is wrong beyond single values, by key; `open`: everybody is let in.
    pub fn faults(&self, open: bool) -> Vec<SettingError> {
        let mut faults = self.oidc.faults();
        if open && !self.oidc.issuer.is_empty() {
            let text = "must be empty where auth is none: nobody logs in";
            faults.push(SettingError::new("iam.oidc.issuer", text));
        }
        faults
    }

    /// How much of what happened is kept.
    pub(crate) fn audit(&self) -> AuditBounds {
        let bytes = |mib: usize| (mib as i64) << 20;
        AuditBounds {
            days: self.audit_days as i64,
            read_days: self.audit_read_days as i64,
            workspace: bytes(self.audit_workspace_mb),
            refused: bytes(self.audit_refused_mb),
            all: bytes(self.audit_mb),
        }
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
