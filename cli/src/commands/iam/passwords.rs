//! `tg change-password`, `reset-password`, `mint-token`, `rotate-signing-key` and `revoke-signing-key`. A password is typed unseen or piped,
//! never printed; only what the service made up is shown, once.

use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use super::in_workspace;
use super::named::user_id;
use super::users::UserId;
use crate::args::{Gateway, Options};
use crate::client::{Error, Result};
use crate::fields::text;
use crate::lines;
use crate::registry::Command;
use crate::session::Session;

/// A password as an argument says it, or as it is typed or piped.
pub(super) async fn password(said: Option<String>, prompt: String) -> Result<String> {
    let password = match said {
        Some(password) => password,
        None => lines::secret(prompt).await?,
    };
    match password.is_empty() {
        true => Err(Error::Usage("the password is empty".to_owned())),
        false => Ok(password),
    }
}

/// Arguments of `tg change-password`.
#[derive(Debug, Args)]
pub struct ChangePassword {
    #[command(flatten)]
    gateway: Gateway,
    /// The present password; asked for, or the first line of standard input, if not given
    #[arg(long, value_name = "TEXT")]
    current: Option<String>,
    /// The new password; asked for, or the next line of standard input, if not given
    #[arg(long, value_name = "TEXT")]
    new: Option<String>,
}

impl Command for ChangePassword {
    const NAME: &'static str = "change-password";
    const ABOUT: &'static str = "Change the caller's own password; tokens got by the old one end";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let current = password(self.current, "Present password: ".to_owned()).await?;
        let new = password(self.new, "New password: ".to_owned()).await?;
        let ask = json!({"current_password": current, "new_password": new});
        let http = session.http()?;
        http.post("api/v1/auth/change-password", &ask).await?;
        session
            .out
            .show(&json!({"changed": true}), || "Password changed.".to_owned())
    }
}

/// Arguments of `tg reset-password`.
#[derive(Debug, Args)]
pub struct ResetPassword {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    user: UserId,
    /// Workspace of the user
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
}

impl Command for ResetPassword {
    const NAME: &'static str = "reset-password";
    const ABOUT: &'static str = "Give a user a temporary password and print it, once";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let user = user_id(session, self.user.id(), self.workspace.as_ref()).await?;
        let ask = in_workspace(
            json!({"operation": "reset-password", "user_id": user}),
            self.workspace,
        );
        let reply = session.http()?.iam(ask).await?;
        if session.out.is_json() {
            return session.out.json(&reply);
        }
        session
            .out
            .talk("Temporary password (shown this once, to be changed by tg change-password):");
        session.out.line(text(&reply, "temporary_password"))
    }
}

/// Arguments of `tg mint-token`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whose").required(true).args(["user_id", "username", "own"]))]
pub struct MintToken {
    #[command(flatten)]
    gateway: Gateway,
    /// Workspace of requests that name none
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
    /// What policies are to know of the user
    #[arg(long, value_name = "JSON")]
    user_context: Option<String>,
    /// For the user with this id
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,
    /// For the user with this name
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// For the caller
    #[arg(long = "self", id = "own")]
    own: bool,
}

impl Command for MintToken {
    const NAME: &'static str = "mint-token";
    const ABOUT: &'static str = "Make a token for a user and print it; it is good for an hour";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut ask = json!({"operation": "mint-token"});
        if let Some(context) = self.user_context {
            let is_object = serde_json::from_slice(context.as_bytes())
                .is_ok_and(|value: Value| value.is_object());
            if !is_object {
                return Err(Error::Usage("--user-context: not a JSON object".to_owned()));
            }
            ask["user_context_json"] = json!(context);
        }
        for (key, value) in [
            ("workspace", self.workspace),
            ("user_id", self.user_id),
            ("username", self.username),
        ] {
            if let Some(value) = value {
                ask[key] = json!(value);
            }
        }
        let reply = session.http()?.iam(ask).await?;
        if session.out.is_json() {
            return session.out.json(&reply);
        }
        let end = text(&reply, "jwt_expires");
        session.out.talk(format!("This token is good until {end}:"));
        session.out.line(text(&reply, "jwt"))
    }
}

/// Arguments of `tg rotate-signing-key`.
#[derive(Debug, Args)]
pub struct RotateSigningKey {
    #[command(flatten)]
    gateway: Gateway,
}

impl Command for RotateSigningKey {
    const NAME: &'static str = "rotate-signing-key";
    const ABOUT: &'static str = "Sign tokens by a new key; those of the old one last to their end";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let ask = json!({"operation": "rotate-signing-key"});
        let reply = session.http()?.iam(ask).await?;
        session.out.show(&reply, || {
            text(&reply, "signing_key_public").trim_end().to_owned()
        })
    }
}

/// Arguments of `tg revoke-signing-key`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["key_id", "all"]))]
pub struct RevokeSigningKey {
    #[command(flatten)]
    gateway: Gateway,
    /// The `kid` that tokens of the key have in their header
    #[arg(long, value_name = "KID")]
    key_id: Option<String>,
    /// All keys: nobody who has logged in stays so
    #[arg(long)]
    all: bool,
}

impl Command for RevokeSigningKey {
    const NAME: &'static str = "revoke-signing-key";
    const ABOUT: &'static str =
        "Refuse all tokens of a signing key, or of all keys, from now on; another signs";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let key = match self.all {
            true => "*".to_owned(),
            false => self.key_id.unwrap_or_default(),
        };
        let ask = json!({"operation": "revoke-signing-key", "key_id": key});
        let reply = session.http()?.iam(ask).await?;
        session.out.show(&reply, || {
            text(&reply, "signing_key_public").trim_end().to_owned()
        })
    }
}
