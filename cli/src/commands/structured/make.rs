//! A schema for a file that fits none: proposed, shown, agreed to, made.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tg_schemas::table::{TABLE, Table};

use super::propose::{Proposal, check_name, propose, usual_name};
use crate::client::{Error, Http, Result};
use crate::commands::config::{get_item, put_item};
use crate::layout::listing;
use crate::lines::{Lines, Typed};
use crate::session::Session;

/// How often it is looked whether the rows' service knows a new schema, and the pause between.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// A schema, and how the file becomes rows of it.
pub(super) struct Made {
    /// A descriptor that names the schema.
    pub(super) descriptor: Value,
    pub(super) table: Table,
}

/// What it is made for.
pub(super) struct Order<'a> {
    pub(super) file: &'a Path,
    /// The schema's name, if it is to be made without asking.
    pub(super) name: Option<&'a str>,
    /// The flow that takes the rows.
    pub(super) flow: &'a str,
    /// Nothing is stored.
    pub(super) dry_run: bool,
}

impl Order<'_> {
    /// Proposes a schema and makes it; `None` when the user does not want it.
    ///
    /// # Errors
    /// [`Error::Missing`] where nobody can be asked; [`Error::Usage`] where there is another schema of that name;
    /// [`Error::File`] where the file gives no schema.
    pub(super) async fn fill(&self, session: &mut Session) -> Result<Option<Made>> {
        if let Some(name) = self.name {
            check_name(name)?;
        }
        let file = self.file.to_owned();
        let proposal = tokio::task::spawn_blocking(move || propose(&file)).await;
        let proposal =
            proposal.map_err(|_| Error::file(self.file, "cannot be read: the reader failed"))??;
        let name = match self.name {
            Some(name) => name.to_owned(),
            None => usual_name(self.file),
        };
        session.out.talk(shown(&proposal, &name));
        let http = session.http()?;
        let (table, text) = schema(&proposal, &name)?;
        if self.name.is_none() && !self.agreed(session, &name).await? {
            session.out.talk("Nothing was made or loaded.");
            return Ok(None);
        }
        let there = get_item(&http, TABLE, &name).await?;
        let same = |there: &String| same(there, &text);
        match there.as_ref().map(same) {
            Some(false) => {
                return Err(Error::Usage(format!(
                    "there is another schema '{name}' already: --schema-name {name} loads into that one, \
                     --make-schema makes one with another name"
                )));
            }
            None if self.dry_run => session.out.talk(format!("Would make the schema '{name}'.")),
            None => {
                put_item(&http, TABLE, &name, &text).await?;
                self.wait(session, &http, &table).await?;
                session.out.talk(format!("Schema '{name}' made."));
            }
            Some(true) => {}
        }
        let mut descriptor = proposal.descriptor;
        descriptor["output"]["schema_name"] = json!(name);
        Ok(Some(Made { descriptor, table }))
    }

    async fn agreed(&self, session: &mut Session, name: &str) -> Result<bool> {
        if !std::io::stdin().is_terminal() {
            let flow = match self.flow {
                "default" => String::new(),
                flow => format!(" -f {flow}"),
            };
            return Err(Error::Missing(session.out.as_called(&format!(
                "no schema of this workspace fits the data; to make the proposed one: \
                 `tg load-structured-data -i {} --auto --make-schema {name}{flow}`",
                self.file.display()
            ))));
        }
        let lines = Lines::of_stdin()?;
        let (_, typed) = lines
            .next("Make this schema and load the file? [y/N] ")
            .await;
        match typed? {
            Typed::Line(line) => Ok(matches!(line.trim(), "y" | "Y" | "yes")),
            Typed::Cleared => Err(Error::Interrupted),
            Typed::End => Ok(false),
        }
    }

    /// Waits until the rows' service knows the schema; before that it would refuse rows of it.
    async fn wait(&self, session: &mut Session, http: &Http, table: &Table) -> Result<()> {
        let field = table.fields.first().map_or("", |field| field.name.as_str());
        let query = format!("{{ {}(limit: 1) {{ {field} }} }}", table.key);
        for _ in 0..LOOKS {
            let reply = http
                .flow_service(self.flow, "rows", json!({"query": query}))
                .await?;
            if reply
                .get("errors")
                .and_then(Value::as_array)
                .is_none_or(Vec::is_empty)
            {
                return Ok(());
            }
            session.pause(PAUSE).await?;
        }
        Err(Error::Check(format!(
            "the schema '{}' was made, but queries do not know it yet: load again with --schema-name {}",
            table.key, table.key
        )))
    }
}

/// The proposal as a schema of that name, and its text.
fn schema(proposal: &Proposal, name: &str) -> Result<(Table, String)> {
    let mut schema = proposal.schema.clone();
    schema["name"] = json!(name);
    let text = schema.to_string();
    let table = Table::read(name, &text);
    Ok((
        table.map_err(|why| Error::Check(format!("the proposed schema: {why}")))?,
        text,
    ))
}

fn same(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_slice::<Value>(text.as_bytes()).ok();
    read(one).is_some() && read(one) == read(other)
}

fn shown(proposal: &Proposal, name: &str) -> String {
    let format = &proposal.descriptor["format"];
    let mut kind = format["type"].as_str().unwrap_or_default().to_uppercase();
    if let Some(delimiter) = format["options"]["delimiter"].as_str() {
        kind += &format!(", columns parted by '{delimiter}'");
    }
    if format["options"]["has_header"] == false {
        kind += ", without a header";
    }
    for key in ["root_path", "record_path"] {
        if let Some(path) = format["options"][key].as_str() {
            kind += &format!(", records at {path}");
        }
    }
    match format["encoding"].as_str().unwrap_or_default() {
        "" | "utf-8" => {}
        "iso-8859-1" => kind += ", ISO 8859-1",
        other => kind += &format!(", {other}"),
    }
    let first = if proposal.more { "the first " } else { "" };
    let rows = proposal.fields.iter().cloned();
    let fields = listing(["FIELD", "TYPE", "FROM", "FOR EXAMPLE"], rows, None);
    let key = match proposal
        .fields
        .iter()
        .any(|[_, kind, ..]| kind.ends_with("the key"))
    {
        true => "",
        false => "\nWithout a key a row is the same row by all its values.",
    };
    format!(
        "Proposed schema '{name}', from {first}{} records ({kind}):\n{}{key}",
        proposal.records,
        fields.trim_end()
    )
}
