//! Collections: `tg set-collection`, `tg list-collections`, `tg delete-collection`, `tg reembed-collection`.

mod reembed;

pub use reembed::ReembedCollection;

use std::io::{BufRead, IsTerminal};

use clap::Args;
use serde_json::{Value, json};
use tg_schemas::ErrorCode;

use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::fields::{list, text, texts};
use crate::layout::{Width, record, table};
use crate::registry::Command;
use crate::session::Session;

const SERVICE: &str = "collection-management";

/// Arguments of `tg set-collection`.
#[derive(Debug, Args)]
pub struct SetCollection {
    #[command(flatten)]
    common: Common,
    /// Collection
    collection: String,
    /// Name for people [default: the id]
    #[arg(short = 'n', long)]
    name: Option<String>,
    /// What it is for
    #[arg(short = 'd', long)]
    description: Option<String>,
    /// A tag; may be given several times
    #[arg(short = 't', long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

impl Command for SetCollection {
    const NAME: &'static str = "set-collection";
    const ABOUT: &'static str = "Create a collection or replace its description";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        // Here -t is a tag; the token has its long name only.
        command.mut_arg("token", |token| token.short(None))
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut request = json!({"operation": "update-collection", "collection": self.collection});
        let given = [("name", &self.name), ("description", &self.description)];
        for (field, value) in given {
            if let Some(value) = value {
                request[field] = json!(value);
            }
        }
        if !self.tags.is_empty() {
            request["tags"] = json!(self.tags);
        }
        let reply = session.http()?.service(SERVICE, request).await?;
        let set = list(&reply, "collections").first().cloned();
        let set = set.ok_or_else(|| Error::Protocol("no collection".to_owned()))?;
        session.out.lay(&set, |width| {
            let rows = [
                ("collection", text(&set, "collection")),
                ("name", text(&set, "name")),
                ("description", text(&set, "description")),
                ("tags", texts(&set, "tags").join(", ")),
            ];
            record(&rows, width)
        })
    }
}

/// Arguments of `tg list-collections`.
#[derive(Debug, Args)]
pub struct ListCollections {
    #[command(flatten)]
    common: Common,
    /// Only those with this tag; may be given several times
    #[arg(short = 't', long = "tag-filter", value_name = "TAG")]
    tags: Vec<String>,
}

impl Command for ListCollections {
    const NAME: &'static str = "list-collections";
    const ABOUT: &'static str = "List the collections";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        // Here -t is a tag; the token has its long name only.
        command.mut_arg("token", |token| token.short(None))
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut request = json!({"operation": "list-collections"});
        if !self.tags.is_empty() {
            request["tag_filter"] = json!(self.tags);
        }
        let reply = session.http()?.all(SERVICE, request).await?;
        let collections = list(&reply, "collections");
        session.out.lay(&Value::from(collections), |width| {
            render(collections, width)
        })
    }
}

/// Makes a collection known before something is loaded into it: what only its data know is in no list, and is refused where
/// questions are asked. Whoever may not list collections, or asks a gateway of others that has none, loads as ever.
///
/// # Errors
/// [`Error::Missing`] where it is not there and the caller may not make it, and what else goes wrong while it is made.
pub(crate) async fn make_known(session: &mut Session, name: &str) -> Result<()> {
    // It is always there.
    if name == "default" {
        return Ok(());
    }
    let http = session.http()?;
    let Ok(reply) = http
        .all(SERVICE, json!({"operation": "list-collections"}))
        .await
    else {
        return Ok(());
    };
    let mut known = list(&reply, "collections").iter();
    if known.any(|one| text(one, "collection") == name) {
        return Ok(());
    }
    let request = json!({"operation": "update-collection", "collection": name});
    match http.service(SERVICE, request).await {
        Ok(_) => session.out.talk(format!("Collection {name} is new.")),
        Err(error) if error.code() == Some(ErrorCode::Forbidden) => {
            let why = "there is no such collection, and you may not make one";
            return Err(Error::Missing(format!("--collection {name}: {why}")));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn render(collections: &[Value], width: Width) -> String {
    if collections.is_empty() {
        return "No collections found.".to_owned();
    }
    let rows = collections.iter().map(|one| {
        [
            text(one, "collection"),
            text(one, "name"),
            text(one, "description"),
            texts(one, "tags").join(", "),
        ]
    });
    table(["Collection", "Name", "Description", "Tags"], rows, width)
}

/// Arguments of `tg delete-collection`.
#[derive(Debug, Args)]
pub struct DeleteCollection {
    #[command(flatten)]
    common: Common,
    /// Collection
    collection: String,
    /// Do not ask
    #[arg(short = 'y', long)]
    yes: bool,
}

impl Command for DeleteCollection {
    const NAME: &'static str = "delete-collection";
    const ABOUT: &'static str = "Delete a collection with all its data";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if !self.yes && !confirmed(session, &self.collection)? {
            session.out.talk("Nothing was deleted.");
            return Ok(());
        }
        let request = json!({"operation": "delete-collection", "collection": self.collection});
        session.http()?.service(SERVICE, request).await?;
        let done = json!({"collection": self.collection, "deleted": true});
        session.out.show(&done, || {
            format!("Collection '{}' deleted.", self.collection)
        })
    }
}

fn confirmed(session: &mut Session, collection: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::Usage(
            "give --yes to delete without being asked".to_owned(),
        ));
    }
    session.out.talk(format!(
        "Delete collection '{collection}' and all its data? [y/N]"
    ));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_listed_with_their_tags() {
        let shown = render(
            &[json!({"collection": "a_b", "name": "A", "tags": ["x", "y"]})],
            None,
        );
        assert!(shown.contains("a_b") && shown.contains("x, y"), "{shown}");
        assert_eq!(render(&[], None), "No collections found.");
    }
}
