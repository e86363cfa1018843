//! `tg list-memories` and `tg forget-memory`: what agents remember of a user.

use clap::Args;
use serde_json::{Value, json};
use tg_schemas::operations::{
    ForgetMemory as Forget, ListMemories as List, Memory, OneMemory, WhichMemories,
};

use super::Whose;
use crate::args::{Common, Options, subject};
use crate::client::Result;
use crate::fields::{list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// What is forgotten.
    Fact,
    "Id of the fact",
    long = "memory-id"
);

/// Entries of a page.
const PAGE: i64 = 200;

/// Arguments of `tg list-memories`.
#[derive(Debug, Args)]
pub struct ListMemories {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    whose: Whose,
}

impl Command for ListMemories {
    const NAME: &'static str = "list-memories";
    const ABOUT: &'static str = "List what agents remember of a user";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut asked = WhichMemories {
            user_id: self.whose.user_id.clone(),
            limit: Some(PAGE),
            cursor: None,
        };
        let mut all: Vec<Memory> = Vec::new();
        loop {
            let page = session.http()?.call::<List>(&asked).await?;
            all.extend(page.memories);
            if page.next_cursor.is_none() || page.next_cursor == asked.cursor {
                break;
            }
            asked.cursor = page.next_cursor;
        }
        let shown = json!({"memories": all});
        session.out.lay(&shown, |width| render(&shown, width))
    }
}

fn render(shown: &Value, width: Width) -> String {
    let columns = [
        "id",
        "subject",
        "predicate",
        "object",
        "agent",
        "created_at",
    ];
    let rows: Vec<_> = list(shown, "memories")
        .iter()
        .map(|one| columns.map(|column| text(one, column)))
        .collect();
    match rows.is_empty() {
        true => "Nothing is remembered.".to_owned(),
        false => table(
            ["id", "subject", "predicate", "object", "agent", "since"],
            rows,
            width,
        ),
    }
}

/// Arguments of `tg forget-memory`.
#[derive(Debug, Args)]
pub struct ForgetMemory {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    fact: Fact,
}

impl Command for ForgetMemory {
    const NAME: &'static str = "forget-memory";
    const ABOUT: &'static str = "Have agents forget a fact about a user";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let asked = OneMemory {
            memory_id: self.fact.id().to_owned(),
            user_id: self.whose.user_id.clone(),
        };
        session.http()?.call::<Forget>(&asked).await?;
        let shown = json!({"forgotten": self.fact.id()});
        session
            .out
            .lay(&shown, |_| format!("forgotten: {}", self.fact.id()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_a_table() {
        let shown = json!({"memories": [{"id": "1", "subject": "Ann", "object": "Kassel"}]});
        let told = render(&shown, None);
        assert!(told.contains("Ann") && told.contains("Kassel"), "{told}");
        assert_eq!(render(&json!({}), None), "Nothing is remembered.");
    }
}
