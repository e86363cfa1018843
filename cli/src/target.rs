//! Where a command goes: what its arguments leave open comes from the environment, else from a profile.

use crate::args::{Options, Stored};
use crate::client::{Result, base_url};
use crate::profiles::Profiles;

/// A variable of the environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What the environment says of something: our variable's text, else that of the reference's; an empty one says nothing.
pub fn said(name: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let names = [format!("THREADGRAPH_{name}"), format!("TRUSTGRAPH_{name}")];
    let mut texts = names.iter().filter_map(|name| variable(name));
    texts.find(|text| !text.is_empty())
}

/// Fills in what the arguments left open: from the environment, else from a profile. A profile's token, workspace and
/// authorities go with its address only.
///
/// # Errors
/// [`crate::client::Error::Usage`] when a profile is named that does not exist, [`crate::client::Error::File`] when profiles cannot be read.
pub fn complete(
    mut options: Options,
    variable: impl Fn(&str) -> Option<String>,
    profiles: impl FnOnce() -> Result<Profiles>,
) -> Result<Options> {
    let said = |name: &str| said(name, &variable);
    options.url = options.url.or_else(|| said("URL"));
    options.token = options.token.or_else(|| said("TOKEN"));
    options.workspace = options.workspace.or_else(|| said("WORKSPACE"));
    let ca_file = variable("THREADGRAPH_CA_FILE").filter(|path| !path.is_empty());
    options.ca_file = options.ca_file.or_else(|| ca_file.map(Into::into));
    let (name, whole) = match &options.stored {
        Stored::Use(name) => (name, true),
        Stored::Address(name) => (name, false),
        Stored::Ignore => return Ok(options),
    };
    let name = name.clone().or_else(|| variable("THREADGRAPH_PROFILE"));
    let profiles = profiles()?;
    let found = profiles.find(name.as_deref().filter(|name| !name.is_empty()));
    let found = match whole {
        true => found?,
        false => found.ok().flatten(),
    };
    let Some(profile) = found else {
        return Ok(options);
    };
    if options.url.is_none() {
        options.url = Some(profile.url.clone());
    }
    if base_url(options.address()).ok() == base_url(&profile.url).ok() {
        if whole {
            options.token = options.token.or_else(|| profile.token.clone());
            options.workspace = options.workspace.or_else(|| profile.workspace.clone());
        }
        options.ca_file = options.ca_file.or_else(|| profile.ca_file.clone());
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::Profile;

    const HERE: &str = "http://here:1/";

    fn completed(
        url: &str,
        token: &str,
        stored: Stored,
        variables: &[(&str, &str)],
    ) -> Result<Options> {
        let options = Options {
            url: Some(url.to_owned()).filter(|text| !text.is_empty()),
            token: Some(token.to_owned()).filter(|text| !text.is_empty()),
            stored,
            ..Options::local()
        };
        let of = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        super::complete(options, of, || {
            let mut profiles = Profiles::default();
            for (name, url) in [("home", HERE), ("work", "https://work.example/")] {
                let profile = Profile {
                    url: url.to_owned(),
                    token: Some(format!("of-{name}")),
                    workspace: Some(name.to_owned()),
                    ca_file: Some(name.into()),
                };
                profiles.put(name, profile);
            }
            profiles.make_current("home")?;
            Ok(profiles)
        })
    }

    #[test]
    fn arguments_go_before_variables_and_those_before_profiles() {
        let all = [
            ("THREADGRAPH_URL", "http://ours/"),
            ("TRUSTGRAPH_URL", "http://theirs/"),
            ("TRUSTGRAPH_TOKEN", "theirs"),
            ("THREADGRAPH_TOKEN", ""),
        ];
        let said = completed("http://said/", "mine", Stored::Use(None), &all).expect("complete");
        assert_eq!(
            (said.address(), said.token.as_deref()),
            ("http://said/", Some("mine"))
        );
        let found = completed("", "", Stored::Use(None), &all).expect("complete");
        assert_eq!(
            (found.address(), found.token.as_deref()),
            ("http://ours/", Some("theirs"))
        );
        let stored = completed("", "", Stored::Use(None), &[]).expect("complete");
        assert_eq!(
            (stored.address(), stored.token.as_deref()),
            (HERE, Some("of-home"))
        );
        assert_eq!(stored.workspace.as_deref(), Some("home"));
        let named = Stored::Use(Some("work".to_owned()));
        let named = completed("", "", named, &[]).expect("complete");
        assert_eq!(named.address(), "https://work.example/");
        let by_variable = completed(
            "",
            "",
            Stored::Use(None),
            &[("THREADGRAPH_PROFILE", "work")],
        );
        assert_eq!(
            by_variable.expect("complete").token.as_deref(),
            Some("of-work")
        );
        let usual = completed("", "", Stored::Ignore, &[]).expect("complete");
        assert_eq!(
            (usual.address(), usual.token.as_deref()),
            ("http://localhost:8888/", None)
        );
    }

    /// A token must not reach a gateway that it was not given for.
    #[test]
    fn a_profiles_token_goes_to_its_own_address_only() {
        let other = completed("http://other:1/", "", Stored::Use(None), &[]).expect("complete");
        assert_eq!(
            (other.token, other.workspace, other.ca_file),
            (None, None, None)
        );
        let same = completed("here:1", "", Stored::Use(None), &[]).expect("complete");
        assert_eq!(same.token.as_deref(), Some("of-home"));
        assert_eq!(same.ca_file, Some("home".into()));
        let variable = [("THREADGRAPH_CA_FILE", "elsewhere")];
        let said = completed("here:1", "", Stored::Use(None), &variable).expect("complete");
        assert_eq!(said.ca_file, Some("elsewhere".into()));
    }

    #[test]
    fn a_login_goes_to_the_saved_address_and_takes_nothing_else_along() {
        let again = completed("", "", Stored::Address(None), &[]).expect("complete");
        assert_eq!(again.address(), HERE);
        assert_eq!((again.token, again.workspace), (None, None));
        assert_eq!(again.ca_file, Some("home".into()), "it is that server's");
        let work = Stored::Address(Some("work".to_owned()));
        let work = completed("", "", work, &[]).expect("complete");
        assert_eq!(work.address(), "https://work.example/");
        let new = Stored::Address(Some("new".to_owned()));
        let new = completed("", "", new, &[]).expect("a profile that is about to be made");
        assert_eq!(
            (new.address(), new.ca_file.as_deref()),
            ("http://localhost:8888/", None)
        );
    }

    #[test]
    fn a_named_profile_must_exist() {
        let named = Stored::Use(Some("nowhere".to_owned()));
        let error = completed("", "", named, &[]).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "--profile: there is no profile 'nowhere'; known: home, work"
        );
    }
}
