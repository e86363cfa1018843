//! `tg login`, `tg logout` and `tg profiles`: address, token and workspace kept under a name; a password for a token.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tg_schemas::ErrorCode;

use super::passwords::password;
use crate::args::{Common, Options, Stored};
use crate::client::{Error, Result};
use crate::fields::text;
use crate::layout::{Width, table};
use crate::profiles::{Profile, Profiles};
use crate::registry::Command;
use crate::session::Session;

/// The profile that is made unless another one is named.
const USUAL: &str = "default";

/// Arguments of `tg login`.
#[derive(Debug, Args)]
pub struct Login {
    #[command(flatten)]
    common: Common,
    /// Get a token for this user by password and print it; kept only with --profile, as it is good for an hour
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Password of --username; asked for, or the first line of standard input, if not given
    #[arg(long, value_name = "TEXT", requires = "username")]
    password: Option<String>,
    /// The token, by --token or the first line of standard input, is one of the external issuer: what the gateway gives for it
    /// is kept. It ends no later
    #[arg(long, conflicts_with = "username")]
    issuer: bool,
}

impl Command for Login {
    const NAME: &'static str = "login";
    const ABOUT: &'static str =
        "Save address, token and workspace for later commands, or get a token by password";

    fn options(&self) -> Options {
        // A token by password is for where one works; else the profile that is written says where.
        let named = self.common.gateway.profile.clone();
        let named = match self.username {
            Some(_) => named,
            None => named.or_else(|| Some(USUAL.to_owned())),
        };
        Options {
            stored: Stored::Address(named),
            ..Options::from(&self.common)
        }
    }

    async fn run(mut self, session: &mut Session) -> Result<()> {
        if let Some(username) = self.username.take() {
            return self.by_password(session, &username).await;
        }
        if self.issuer {
            // Not one of the environment: that is ours.
            let given = self
                .common
                .gateway
                .token
                .take()
                .filter(|text| !text.is_empty());
            let token = match given {
                Some(token) => token,
                None => ask_token(session, "Paste the issuer's token here (it will be seen):")?,
            };
            session.options.token = None;
            let reply = session_token(session, json!({"token": token})).await?;
            session.options.token = Some(text(&reply, "jwt"));
        }
        let user = match whoami(session).await {
            Err(error)
                if session.options.token.is_none()
                    && error.code() == Some(ErrorCode::Unauthenticated) =>
            {
                let text = "This gateway wants a token. Paste it here (it will be seen):";
                session.options.token = Some(ask_token(session, text)?);
                whoami(session).await?
            }
            user => user?,
        };
        let name = self.common.gateway.profile.as_deref().unwrap_or(USUAL);
        let (url, path) = keep(session, name)?;
        let shown = json!({"profile": name, "url": url, "user": user});
        session.out.show(&shown, || {
            let who = match text(&user, "username") {
                name if name.is_empty() => text(&user, "id"),
                name => name,
            };
            let who = if who.is_empty() {
                String::new()
            } else {
                format!(" as {who}")
            };
            format!(
                "Logged in at {url}{who}; kept as profile '{name}' in {}",
                path.display()
            )
        })
    }
}

impl Login {
    /// A token by password: to standard output alone, so that it can be captured.
    async fn by_password(self, session: &mut Session, username: &str) -> Result<()> {
        let password = password(self.password, format!("Password of {username}: ")).await?;
        let ask = json!({"username": username, "password": password});
        let reply = session_token(session, ask).await?;
        let jwt = text(&reply, "jwt");
        if let Some(name) = self.common.gateway.profile.as_deref() {
            session.options.token = Some(jwt.clone());
            let (url, path) = keep(session, name)?;
            let told = format!("Kept as profile '{name}' for {url} in {}", path.display());
            session.out.talk(told);
        }
        if session.out.is_json() {
            return session.out.json(&reply);
        }
        let end = text(&reply, "jwt_expires");
        session.out.talk(format!("This token is good until {end}:"));
        session.out.line(jwt)
    }
}

/// What the gateway gives for a password, or for a token of an issuer.
async fn session_token(session: &Session, mut ask: Value) -> Result<Value> {
    if let Some(workspace) = &session.options.workspace {
        ask["workspace"] = json!(workspace);
    }
    let reply = session.http()?.post("api/v1/auth/login", &ask).await?;
    match text(&reply, "jwt").is_empty() {
        true => Err(Error::Protocol("no token".to_owned())),
        false => Ok(reply),
    }
}

/// Keeps what the session came with as a profile: where it leads, and the file.
fn keep(session: &Session, name: &str) -> Result<(String, PathBuf)> {
    let mut profiles = Profiles::load()?;
    let profile = Profile {
        url: session.http()?.base().to_string(),
        token: session.options.token.clone(),
        workspace: session.options.workspace.clone(),
        ca_file: absolute(session.options.ca_file.as_deref())?,
    };
    let url = profile.url.clone();
    profiles.put(name, profile);
    profiles.make_current(name)?;
    Ok((url, profiles.save()?))
}

/// A file by a name that is good from everywhere.
fn absolute(path: Option<&Path>) -> Result<Option<PathBuf>> {
    let whole = |path: &Path| std::path::absolute(path).map_err(|error| Error::file(path, error));
    path.map(whole).transpose()
}

async fn whoami(session: &Session) -> Result<Value> {
    let mut reply = session.http()?.iam(json!({"operation": "whoami"})).await?;
    Ok(reply.get_mut("user").map(Value::take).unwrap_or_default())
}

/// A token from standard input, so that it stays out of the shell's history.
fn ask_token(session: &mut Session, text: &str) -> Result<String> {
    if std::io::stdin().is_terminal() {
        session.out.talk(text);
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Error::file("<stdin>", error))?;
    match line.trim() {
        "" => Err(Error::Usage("--token: is required".to_owned())),
        token => Ok(token.to_owned()),
    }
}

/// Arguments of `tg logout`.
#[derive(Debug, Args)]
pub struct Logout {
    /// Profile to forget [default: the current one]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Command for Logout {
    const NAME: &'static str = "logout";
    const ABOUT: &'static str = "Remove a saved login; the token itself stays valid";

    fn options(&self) -> Options {
        Options {
            json: self.json,
            ..Options::local()
        }
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut profiles = Profiles::load()?;
        let name = profiles.remove(self.profile.as_deref())?;
        if name.is_some() {
            profiles.save()?;
        }
        let current = profiles.current().map(str::to_owned);
        let told = json!({"forgotten": name, "current": current});
        session
            .out
            .show(&told, || forgotten(name.as_deref(), &profiles))
    }
}

/// What a logout did, and where commands go from now on.
fn forgotten(name: Option<&str>, left: &Profiles) -> String {
    let Some(name) = name else {
        return "There is no current profile.".to_owned();
    };
    let now = match (left.current(), left.all().count()) {
        (Some(current), _) => format!(" Commands use '{current}' now."),
        (None, 0) => String::new(),
        (None, _) => {
            " None is current: `tg profiles --use NAME` chooses one of the others.".to_owned()
        }
    };
    format!("Profile '{name}' is forgotten.{now}")
}

/// Arguments of `tg profiles`.
#[derive(Debug, Args)]
pub struct ShowProfiles {
    /// Have this one count from now on
    #[arg(long = "use", value_name = "NAME")]
    chosen: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Command for ShowProfiles {
    const NAME: &'static str = "profiles";
    const ABOUT: &'static str = "List the saved logins, or choose one of them";

    fn options(&self) -> Options {
        Options {
            json: self.json,
            ..Options::local()
        }
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut profiles = Profiles::load()?;
        if let Some(name) = &self.chosen {
            profiles.make_current(name)?;
            profiles.save()?;
        }
        // A token is never shown again.
        let shown: Value = profiles
            .all()
            .map(|(name, profile, current)| {
                json!({"name": name, "url": profile.url, "workspace": profile.workspace,
                    "has-token": profile.token.is_some(), "current": current})
            })
            .collect();
        session.out.lay(&shown, |width| render(&profiles, width))
    }
}

fn render(profiles: &Profiles, width: Width) -> String {
    let rows: Vec<[String; 4]> = profiles
        .all()
        .map(|(name, profile, current)| {
            [
                if current {
                    format!("{name} (current)")
                } else {
                    name.to_owned()
                },
                profile.url.clone(),
                profile.workspace.clone().unwrap_or_default(),
                if profile.token.is_some() { "kept" } else { "" }.to_owned(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "No profiles.".to_owned();
    }
    table(["profile", "url", "workspace", "token"], rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logout_says_where_commands_go_from_now_on() {
        let mut profiles = Profiles::default();
        for name in ["a", "b", "c"] {
            let profile = Profile {
                url: format!("http://{name}/"),
                token: None,
                workspace: None,
                ca_file: None,
            };
            profiles.put(name, profile);
        }
        profiles.make_current("a").expect("known");
        let mut told = Vec::new();
        for name in [Some("a"), None, Some("b"), None, None] {
            let name = profiles.remove(name).expect("known");
            told.push(forgotten(name.as_deref(), &profiles));
        }
        assert_eq!(
            told,
            [
                "Profile 'a' is forgotten. None is current: `tg profiles --use NAME` chooses one of the others.",
                "There is no current profile.",
                "Profile 'b' is forgotten. Commands use 'c' now.",
                "Profile 'c' is forgotten.",
                "There is no current profile.",
            ]
        );
    }
}
