//! `tg reembed-collection`: has the vectors of a collection made again by the embeddings model of a flow, and switched over at
//! once. It goes on without the command.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::SERVICE;
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::commands::library::passes;
use crate::fields::{text, texts};
use crate::layout::{Width, record};
use crate::registry::Command;
use crate::session::Session;

/// Pause between two looks at how far it is.
const PAUSE: Duration = Duration::from_millis(300);

/// Arguments of `tg reembed-collection`.
#[derive(Debug, Args)]
pub struct ReembedCollection {
    #[command(flatten)]
    common: Common,
    /// Collection
    collection: String,
    /// Flow whose embeddings model makes the vectors
    #[arg(short = 'f', long, value_name = "ID", default_value = "default")]
    flow_id: String,
    /// Vectors whose text is not known, or is refused by the new model, go with the old one, instead of holding up the end
    #[arg(long)]
    leave_out: bool,
    /// Do not wait until the new vectors serve
    #[arg(long)]
    no_wait: bool,
    /// Only say how far it is
    #[arg(long, conflicts_with_all = ["abandon", "leave_out", "no_wait"])]
    show: bool,
    /// Give it up; the vectors that serve stay
    #[arg(long, visible_alias = "cancel", conflicts_with_all = ["leave_out", "no_wait"])]
    abandon: bool,
}

impl Command for ReembedCollection {
    const NAME: &'static str = "reembed-collection";
    const ABOUT: &'static str = "Have the vectors of a collection made again by another model";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let operation = match (self.show, self.abandon) {
            (true, _) => "show-reembedding",
            (_, true) => "abandon-reembedding",
            _ => "reembed-collection",
        };
        let mut told = self.ask(session, operation).await?;
        if operation == "reembed-collection" && !self.no_wait {
            told = self.wait(session, told).await?;
        }
        session
            .out
            .lay(&told, |width| overview(&self.collection, &told, width))?;
        match text(&told, "state").as_str() {
            "waiting" if !self.show => Err(Error::Check(text(&told, "reason"))),
            _ => Ok(()),
        }
    }
}

impl ReembedCollection {
    async fn ask(&self, session: &Session, operation: &str) -> Result<Value> {
        let request = json!({
            "operation": operation,
            "collection": self.collection,
            "flow": self.flow_id,
            "leave-out": self.leave_out,
        });
        let reply = session.http()?.service(SERVICE, request).await?;
        let told = reply.get("reembedding").cloned();
        told.ok_or_else(|| Error::Protocol("no reembedding".to_owned()))
    }

    /// Until the new vectors serve, or it does not go on by itself. What stands in the way may pass, and a server that is away
    /// come back, as long as the session waits for anything.
    async fn wait(&self, session: &mut Session, mut told: Value) -> Result<Value> {
        let mut line = session.out.living();
        let mut stuck: Option<Instant> = None;
        let outcome = loop {
            if text(&told, "state") != "running" {
                break Ok(told);
            }
            line.tell(&mut session.out, &far(&told));
            let why = match text(&told, "reason") {
                why if why.is_empty() => None,
                why => Some(Error::Check(why)),
            };
            let looked = match session.pause(PAUSE).await {
                Ok(()) => self.ask(session, "show-reembedding").await,
                Err(interrupted) => break Err(interrupted),
            };
            let why = match looked {
                Ok(now) => {
                    told = now;
                    why
                }
                Err(error) if passes(&error) => Some(error),
                Err(error) => break Err(error),
            };
            match why {
                None => stuck = None,
                Some(why) => {
                    let since = stuck.get_or_insert_with(Instant::now);
                    if since.elapsed() > session.options.timeout {
                        break Err(why);
                    }
                }
            }
        };
        line.end();
        outcome
    }
}

/// `1,200 of 3,000 vectors (40 %)`.
fn far(told: &Value) -> String {
    let number = |name: &str| told[name].as_u64().unwrap_or(0);
    let (done, total) = (number("done"), number("total"));
    let part = (done * 100).checked_div(total).unwrap_or(100);
    match text(told, "reason") {
        why if why.is_empty() => format!("{done} of {total} vectors ({part} %)"),
        why => format!("{done} of {total} vectors ({part} %): {why}"),
    }
}

fn overview(collection: &str, told: &Value, width: Width) -> String {
    let mut rows = vec![
        ("collection", collection.to_owned()),
        ("state", text(told, "state")),
        ("serving", texts(told, "serving").join(", ")),
    ];
    if !text(told, "model").is_empty() {
        rows.push(("new model", text(told, "model")));
        rows.push(("made", far(told)));
    }
    if told["textless"].as_u64().is_some_and(|count| count > 0) {
        rows.push(("without a text", told["textless"].to_string()));
    }
    if told["refused"].as_u64().is_some_and(|count| count > 0) {
        rows.push(("refused", told["refused"].to_string()));
        rows.push(("first refused", text(told, "refusal")));
    }
    if text(told, "state") == "waiting" {
        rows.push(("why", text(told, "reason")));
    }
    record(&rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is_is_told_with_what_stands_in_the_way() {
        let told = json!({"state": "running", "model": "b/2", "serving": ["a/2"], "done": 1200, "total": 3000,
            "textless": 0, "reason": "the provider is away"});
        assert_eq!(
            far(&told),
            "1200 of 3000 vectors (40 %): the provider is away"
        );
        let shown = overview("c", &told, None);
        assert!(
            shown.contains("a/2") && shown.contains("b/2") && !shown.contains("text"),
            "{shown}"
        );
        let nothing = json!({"state": "nothing", "model": "", "serving": [], "done": 0, "total": 0, "textless": 0,
            "reason": ""});
        assert_eq!(far(&nothing), "0 of 0 vectors (100 %)");
        assert!(!overview("c", &nothing, None).contains("made"));
        let waiting = json!({"state": "waiting", "model": "b/2", "serving": ["a/2"], "done": 1, "total": 3, "textless": 2,
            "reason": "no text"});
        assert!(overview("c", &waiting, None).contains("without a text"));
        let refused = json!({"state": "waiting", "model": "b/2", "serving": ["a/2"], "done": 2, "total": 3, "textless": 0,
            "refused": 1, "refusal": "chunk k7: texts: too long", "reason": "the new model refuses texts"});
        let shown = overview("c", &refused, None);
        assert!(
            shown.contains("k7") && shown.contains("the new model refuses texts"),
            "{shown}"
        );
    }
}
