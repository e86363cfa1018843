//! What `tg login` keeps: addresses with token and workspace, by name, in one file that only its owner can read.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::client::{Error, Result};

/// Where a gateway is and who asks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Address of the gateway.
    pub url: String,
    /// Token, where one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Workspace to work in; the caller's own if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Authorities that may sign its certificate, where the machine's are not those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

/// All profiles of a user.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiles {
    /// The one that counts when none is named; empty: none.
    #[serde(default)]
    current: String,
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Reads the user's file; none is no profiles.
    ///
    /// # Errors
    /// [`Error::File`] when the file is there and cannot be read.
    pub fn load() -> Result<Self> {
        match file() {
            Some(path) => Self::read(&path),
            None => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            text => text.map_err(|error| Error::file(path, error))?,
        };
        serde_json::from_slice(text.as_bytes())
            .map_err(|error| Error::file(path, format!("holds no profiles ({error}); remove it")))
    }

    /// Writes the user's file, readable by its owner only.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be written, or when there is no directory for it.
    pub fn save(&self) -> Result<PathBuf> {
        let path = file().ok_or_else(|| {
            Error::Usage("HOME: is required, or XDG_CONFIG_HOME, to keep a profile".to_owned())
        })?;
        self.write(&path)?;
        Ok(path)
    }

    fn write(&self, path: &Path) -> Result<()> {
        let failed = |error: std::io::Error| Error::file(path, error);
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(failed)?;
        // Such a file is its owner's alone from its first byte on; the name gets it whole.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        writeln!(file, "{text}").map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// A profile: the named one, else the current one if there is any.
    ///
    /// # Errors
    /// [`Error::Usage`] when the named one does not exist.
    pub fn find(&self, name: Option<&str>) -> Result<Option<&Profile>> {
        match name {
            Some(name) => self.named(name).map(Some),
            None => Ok(self.profiles.get(&self.current)),
        }
    }

    fn named(&self, name: &str) -> Result<&Profile> {
        self.profiles.get(name).ok_or_else(|| {
            let known = self.names();
            let known = match known.is_empty() {
                true => "none; `tg login` makes one".to_owned(),
                false => known.join(", "),
            };
            Error::Usage(format!(
                "--profile: there is no profile '{name}'; known: {known}"
            ))
        })
    }

    /// Adds a profile, or replaces the one of that name.
    pub fn put(&mut self, name: &str, profile: Profile) {
        self.profiles.insert(name.to_owned(), profile);
    }

    /// Has a profile count when none is named.
    ///
    /// # Errors
    /// [`Error::Usage`] when it does not exist.
    pub fn make_current(&mut self, name: &str) -> Result<()> {
        self.named(name)?;
        self.current = name.to_owned();
        Ok(())
    }

    /// Removes a profile: the named one, else the current one. Returns its name. If that leaves a single one and none that is
    /// current, it is from now on: commands would go to this machine although only one gateway is known.
    ///
    /// # Errors
    /// [`Error::Usage`] when the named one does not exist.
    pub fn remove(&mut self, name: Option<&str>) -> Result<Option<String>> {
        let name = name.unwrap_or(&self.current).to_owned();
        if name.is_empty() {
            return Ok(None);
        }
        self.named(&name)?;
        self.profiles.remove(&name);
        if self.current == name {
            self.current.clear();
        }
        if let (true, [only]) = (self.current.is_empty(), &*self.names()) {
            self.current = (*only).to_owned();
        }
        Ok(Some(name))
    }

    fn names(&self) -> Vec<&str> {
        self.profiles.keys().map(String::as_str).collect()
    }

    /// The one that counts when none is named.
    pub fn current(&self) -> Option<&str> {
        Some(self.current.as_str()).filter(|name| !name.is_empty())
    }

    /// All of them by name, and whether each is the current one.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Profile, bool)> {
        let current = self.current.as_str();
        let rows = self.profiles.iter();
        rows.map(move |(name, profile)| (name.as_str(), profile, name == current))
    }
}

/// Where the profiles are, by the XDG base directory specification.
fn file() -> Option<PathBuf> {
    let directory = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let base = directory("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(directory("HOME")?.join(".config")))?;
    Some(base.join("threadgraph").join("profiles.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_kept_for_their_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new").join("profiles.json");
        assert_eq!(Profiles::read(&path).expect("none"), Profiles::default());
        let mut profiles = Profiles::default();
        let profile = Profile {
            url: "http://h:1/".to_owned(),
            token: Some("tg_x".to_owned()),
            workspace: None,
            ca_file: None,
        };
        profiles.put("home", profile.clone());
        profiles.make_current("home").expect("known");
        profiles.write(&path).expect("written");
        let mut read = Profiles::read(&path).expect("read");
        assert_eq!(read, profiles);
        assert_eq!(read.find(None).expect("found"), Some(&profile));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path)
                .expect("there")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(read.remove(None).expect("removed").as_deref(), Some("home"));
        assert_eq!(read.remove(None).expect("nothing to do"), None);
        assert!(read.remove(Some("home")).is_err());
        std::fs::write(&path, "[1]").expect("written");
        assert!(Profiles::read(&path).is_err());
    }
}
