//! `tg models`: static embedding models in the data directory, as the embeddings service reads them.
//!
//! `<data-dir>/models/<name>` appears only when all of its files are there and have the right hashes.

mod catalogue;
mod download;
#[cfg(test)]
mod fuzz;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::catalogue::{File, Known, USUAL, plain, read_sums, write_sums};
use self::download::{Source, has_hash};
use crate::args::Options;
use crate::client::{Error, Result};
use crate::files::read_text;
use crate::layout::table;
use crate::registry::Command;
use crate::session::Session;

const SUMS: &str = "SHA256SUMS";
/// Files of a model at most.
const FILES: usize = 16;

/// Arguments of `tg models`.
#[derive(Debug, Args)]
pub struct Models {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Fetch a model, checked by hash; goes on where an earlier try ended
    Pull(Pull),
    /// Show the models that are here and those that are known
    List(ModelArgs),
}

#[derive(Debug, Args)]
struct ModelArgs {
    /// Data directory of the system [default: that of `threadgraph up`]
    #[arg(long, env = "THREADGRAPH_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Pull {
    #[command(flatten)]
    place: ModelArgs,
    /// Model; one that is not known needs --from
    #[arg(value_name = "NAME", default_value = USUAL)]
    name: String,
    /// Address below which its files lie
    #[arg(long, env = "THREADGRAPH_MODELS_FROM", value_name = "URL")]
    from: Option<String>,
    /// File of hashes, as sha256sum writes it [default: those known here, else SHA256SUMS at the source]
    #[arg(long, value_name = "FILE")]
    sums: Option<PathBuf>,
    /// Replace a model of that name
    #[arg(long)]
    force: bool,
}

impl Command for Models {
    const NAME: &'static str = "models";
    const ABOUT: &'static str = "Fetch embedding models, or show which are here";

    fn options(&self) -> Options {
        let json = match &self.what {
            What::Pull(pull) => pull.place.json,
            What::List(place) => place.json,
        };
        Options {
            json,
            ..Options::local()
        }
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        match self.what {
            What::Pull(pull) => pull.run(session).await,
            What::List(place) => list(session, &place),
        }
    }
}

impl ModelArgs {
    /// Where models are: the same place as the server's.
    fn models(&self) -> PathBuf {
        let given = self
            .data_dir
            .clone()
            .filter(|dir| !dir.as_os_str().is_empty());
        let data = given.unwrap_or_else(|| {
            let home = std::env::var_os("HOME")
                .map(PathBuf::from)
                .unwrap_or_default();
            std::env::var_os("XDG_DATA_HOME")
                .map_or_else(|| home.join(".local/share"), PathBuf::from)
                .join("threadgraph")
        });
        data.join("models")
    }
}

impl Pull {
    async fn run(&self, session: &mut Session) -> Result<()> {
        if !plain(&self.name) {
            let why = "must be a plain name of letters, digits, '.', '_' and '-'";
            return Err(Error::Usage(format!("{}: {why}", self.name)));
        }
        let models = self.place.models();
        let end = models.join(&self.name);
        let known = Known::find(&self.name);
        if !self.force && end.exists() {
            return match whole(&end)? {
                true => self.done(session, &end, false),
                false => Err(Error::file(
                    &end,
                    "is there, but its files are not those that SHA256SUMS names; --force replaces it",
                )),
            };
        }
        let address = match (&self.from, known) {
            (Some(from), _) => from.clone(),
            (None, Some(known)) => known.address(),
            (None, None) => {
                let names: Vec<_> = Known::all().iter().map(|known| known.name).collect();
                return Err(Error::Usage(format!(
                    "{}: is not known here ({} is); --from says where it lies",
                    self.name,
                    names.join(", ")
                )));
            }
        };
        let source = Source::new(&address)?;
        let files = self.files(session, &source, known).await?;
        // A name that no setting can choose; what an interrupted pull leaves there is used by the next.
        let making = models.join(format!(".{}.coming", self.name));
        fs::create_dir_all(&making).map_err(|error| Error::file(&making, error))?;
        for file in &files {
            let size = source.fetch(session, file, &making).await?;
            session.out.talk(format!("{}: {size} bytes", file.name));
        }
        let sums = making.join(SUMS);
        fs::write(&sums, write_sums(&files)).map_err(|error| Error::file(&sums, error))?;
        if end.exists() {
            fs::remove_dir_all(&end).map_err(|error| Error::file(&end, error))?;
        }
        fs::rename(&making, &end).map_err(|error| Error::file(&end, error))?;
        self.done(session, &end, true)
    }

    /// The files and their hashes: the user's, else those known here, else the source's own.
    async fn files(
        &self,
        session: &mut Session,
        source: &Source,
        known: Option<&Known>,
    ) -> Result<Vec<File>> {
        let files = match (&self.sums, known) {
            (Some(path), _) => {
                read_sums(&read_text(path)?).map_err(|why| Error::file(path, why))?
            }
            (None, Some(known)) => known.files(),
            (None, None) => {
                let text = source.sums(session).await?.ok_or_else(|| {
                    Error::Usage("the source has no SHA256SUMS; --sums names the hashes".to_owned())
                })?;
                session
                    .out
                    .talk("The hashes are the source's own: they show damage, not another author.");
                read_sums(&text).map_err(|why| Error::Usage(format!("SHA256SUMS: {why}")))?
            }
        };
        let has = |name: &str| files.iter().any(|file| file.name == name);
        if !has("model.safetensors") || !has("tokenizer.json") || files.len() > FILES {
            return Err(Error::Usage(format!(
                "the hashes must name model.safetensors, tokenizer.json and at most {FILES} files"
            )));
        }
        Ok(files)
    }

    fn done(&self, session: &mut Session, end: &Path, fetched: bool) -> Result<()> {
        let shown = json!({
            "name": self.name, "directory": end.display().to_string(), "fetched": fetched,
        });
        let name = &self.name;
        session.out.show(&shown, || match fetched {
            true => format!("{name} is in {}", end.display()),
            false => format!("{name} is in {} already", end.display()),
        })?;
        session.out.talk(format!(
            "Use it: THREADGRAPH_EMBEDDINGS__PROVIDER=static THREADGRAPH_EMBEDDINGS__MODEL={name}"
        ));
        Ok(())
    }
}

/// Whether a model's files are those that its SHA256SUMS names.
fn whole(directory: &Path) -> Result<bool> {
    let Ok(text) = fs::read_to_string(directory.join(SUMS)) else {
        return Ok(false);
    };
    let Ok(files) = read_sums(&text) else {
        return Ok(false);
    };
    for file in &files {
        if !has_hash(&directory.join(&file.name), &file.sha256)? {
            return Ok(false);
        }
    }
    Ok(!files.is_empty())
}

fn list(session: &mut Session, place: &ModelArgs) -> Result<()> {
    let models = place.models();
    let mut found = Vec::new();
    for entry in fs::read_dir(&models).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if plain(&name) && entry.path().is_dir() {
            let state = match whole(&entry.path())? {
                true => "here, checked",
                false => "here, without matching hashes",
            };
            found.push((name, state, String::new()));
        }
    }
    for known in Known::all() {
        match found.iter_mut().find(|(name, ..)| name == known.name) {
            Some((.., about)) => *about = known.about.to_owned(),
            None => found.push((
                known.name.to_owned(),
                "can be pulled",
                known.about.to_owned(),
            )),
        }
    }
    found.sort();
    let shown: Vec<Value> = found
        .iter()
        .map(|(name, state, about)| json!({"name": name, "state": state, "about": about}))
        .collect();
    session.out.lay(&Value::from(shown), |width| {
        let rows = found
            .iter()
            .map(|(name, state, about)| [name.clone(), (*state).to_owned(), about.clone()]);
        table(["model", "state", "about"], rows, width)
    })
}
