//! What an operation is given from outside, and what it makes of that.

use chrono::{DateTime, Utc};
use tg_jwt::SigningKey;
use tg_schemas::msg::IamResponse;

use super::Change;
use crate::external::External;
use crate::password::{PasswordHash, Proof, Temporary};
use crate::secret::ApiKey;

/// What an engine may not make itself.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    /// An id for a new user.
    pub(crate) user_id: String,
    /// An id for a new key.
    pub(crate) key_id: String,
    /// A new key.
    pub(crate) key: ApiKey,
    /// What is kept of the password that is set.
    pub(crate) password: Option<PasswordHash>,
    /// That password, where it was made here.
    pub(crate) temporary: Option<Temporary>,
    /// A key to sign with from now on.
    pub(crate) signing: Option<SigningKey>,
}

/// The circumstances of a call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Now.
    pub(crate) now: DateTime<Utc>,
    /// Id of the question; asked again under it, nothing is made twice.
    pub(crate) question: String,
    /// What the client calls its request, if it does: by that it may ask again itself.
    pub(crate) named: Option<String>,
    /// Whoever asks has the one-time code, or asks from a program on the machine itself.
    pub(crate) vouched: bool,
    /// Users of one home workspace at most.
    pub(crate) workspace_users: usize,
    /// Who was shown to know their password, if somebody was.
    pub(crate) proof: Option<Proof>,
    /// For whom an external issuer answers, if one does.
    pub(crate) external: Option<External>,
    /// Ids and a key that nobody else has.
    pub(crate) fresh: Fresh,
}

/// What an operation does and says.
#[derive(Debug, Default)]
pub(crate) struct Effect {
    /// To be stored together before anything is said.
    pub(crate) changes: Vec<Change>,
    /// The answer.
    pub(crate) answer: IamResponse,
    /// Nothing of it concerns what others remember.
    pub(crate) quiet: bool,
}

impl From<IamResponse> for Effect {
    fn from(answer: IamResponse) -> Self {
        Self {
            answer,
            ..Self::default()
        }
    }
}
