//! A workspace's `usage`: what its runs and other calls of models used, summed up by run, session, agent, key, model, tool, or
//! altogether. Services have calls reserved and counted here; no client may.

use std::sync::Arc;

use async_trait::async_trait;
use tg_clients::model_calls::{RESERVE, SETTLE};
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::msg::{UsageRequest, UsageResponse, UsageTotal};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use super::day;
use crate::engine::usage::{Amount, Scope};
use crate::run::{Agent, outside};
use crate::store::Days;

/// Sums read from the ledger at once.
const STRIDE: usize = 512;

/// Serves `usage` of `agent-manager`.
pub(crate) struct Usage(pub(crate) Arc<Agent>);

#[async_trait]
impl RequestHandler<UsageRequest, UsageResponse> for Usage {
    async fn serve(
        &self,
        cx: Cx,
        ask: UsageRequest,
        mut out: Responder<UsageResponse>,
    ) -> Result<(), Error> {
        let answer = match ask.operation.as_str() {
            "list-usage" => self.list(&cx, &ask).await?,
            "clear-usage" => self.clear(&cx, &ask).await?,
            RESERVE => outside::reserve(&self.0, &cx, &ask.calls).await?,
            SETTLE => outside::settle(&self.0, &cx, &ask.calls).await?,
            _ => return Err(fault("operation: must be list-usage or clear-usage")),
        };
        out.send(answer).await
    }
}

impl Usage {
    /// Counts a session or an agent anew, and says what was counted of it.
    async fn clear(&self, cx: &Cx, ask: &UsageRequest) -> Result<UsageResponse, Error> {
        let (scope, name) = match (ask.session.as_str(), ask.agent.as_str()) {
            ("", "") => return Err(fault("session: is required, or agent")),
            (session, "") => (Scope::Session, session),
            ("", agent) => (Scope::Agent, agent),
            _ => return Err(fault("agent: must be left out where session is given")),
        };
        let ledger = self.0.ledger().await?;
        let workspace = cx.workspace_key().to_string();
        let cleared = ledger.clear_usage(&workspace, (scope, name)).await?;
        let cleared = cleared.map(|amount| total(name.to_owned(), &amount));
        Ok(UsageResponse {
            usage: cleared.into_iter().collect(),
            ..UsageResponse::default()
        })
    }

    async fn list(&self, cx: &Cx, ask: &UsageRequest) -> Result<UsageResponse, Error> {
        let days = days(ask)?;
        let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
        let mut after = asked.after().unwrap_or_default().to_owned();
        let mut page = Page::new(asked);
        let ledger = self.0.ledger().await?;
        let workspace = cx.workspace_key().to_string();
        loop {
            let some = ledger.usage(&workspace, &days, &after, STRIDE).await?;
            let last = some.len() < STRIDE;
            for (name, amount) in some {
                if page.is_full() {
                    break;
                }
                after.clone_from(&name);
                let name = match days.scope {
                    Scope::Workspace if !days.daily => cx.workspace().to_owned(),
                    _ => name,
                };
                page.add(&after, total(name, &amount))?;
            }
            if last || page.is_full() {
                break;
            }
        }
        Ok(UsageResponse {
            usage: page.entries,
            next: page.next,
            ..UsageResponse::default()
        })
    }
}

fn days(ask: &UsageRequest) -> Result<Days, Error> {
    let daily = ask.by == "day";
    let by = match ask.by.as_str() {
        "" | "day" => Some(Scope::Workspace),
        by => Scope::read(by),
    };
    let scope = by.ok_or_else(|| {
        fault("by: must be run, tool, model, workspace, key, session, agent or day")
    })?;
    Ok(Days {
        scope,
        since: match ask.since.as_str() {
            "" => String::new(),
            since => day::read("since", since)?,
        },
        until: day::read("until", &ask.until)?,
        daily,
    })
}

fn fault(text: &str) -> Error {
    Error::new(ErrorCode::BadRequest, text)
}

fn total(name: String, amount: &Amount) -> UsageTotal {
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    UsageTotal {
        name,
        model_calls: count(amount.model_calls),
        tool_calls: count(amount.tool_calls),
        in_token: count(amount.in_token),
        out_token: count(amount.out_token),
        cache_read: count(amount.cache_read),
        dollars: amount.dollars(),
        duration_ms: count(amount.duration_ms),
        cache_write: count(amount.cache_write),
        total: count(amount.tokens()),
    }
}
