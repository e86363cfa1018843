//! The queue of what happened: gateways say what they decided, administrators ask. Nobody takes anything away, and what
//! changed here nobody else says.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tg_clients::audit::{ALLOWED, KINDS, LOST, READ, REFUSED, STRANGER, size};
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder, clock};
use tg_schemas::msg::{AuditEntry, AuditRequest, AuditResponse};
use tg_schemas::paging::no_cursor;
use tg_schemas::{Error, ErrorCode, limits};

use crate::cached::CachedDirectory;
use crate::engine::{invalid, moment, workspace_id};
use crate::options::AuthMode;
use crate::places::Places;
use crate::store::{AuditBatch, AuditWanted};

/// Most entries of a page.
const MOST: i64 = 1000;
/// Most entries of a batch, which is bounded in bytes by who sends it.
const BATCH: usize = 100_000;

/// By which gateways say what they decided.
const KEEP: &str = "keep-events";

/// Kinds that gateways say.
const SAID: [&str; 5] = [ALLOWED, READ, REFUSED, STRANGER, LOST];

/// Answers on the system queue.
pub(crate) struct Handler {
    pub(crate) store: Arc<LeasedStore<CachedDirectory>>,
    pub(crate) auth_mode: AuthMode,
    pub(crate) places: Places,
}

#[async_trait]
impl RequestHandler<AuditRequest, AuditResponse> for Handler {
    async fn serve(
        &self,
        _: Cx,
        ask: AuditRequest,
        mut out: Responder<AuditResponse>,
    ) -> Result<(), Error> {
        // Gateways say one batch after the other, and none of them waits for those who read.
        let _place = match ask.operation.as_str() {
            KEEP => None,
            operation => self.places.of(operation, "")?,
        };
        let service = self.store.get().await?;
        let answer = match ask.operation.as_str() {
            KEEP => keep(&service, ask).await?,
            "list-events" => self.list(&service, ask).await?,
            _ => return Err(Error::new(ErrorCode::BadOperation, "Bad operation")),
        };
        drop(service);
        out.send(answer).await
    }
}

async fn keep(service: &CachedDirectory, ask: AuditRequest) -> Result<AuditResponse, Error> {
    if ask.source.is_empty() || ask.source.len() > 64 || ask.entries.len() > BATCH {
        return Err(invalid("source", "is not that of a batch"));
    }
    let mut batch = AuditBatch {
        source: ask.source,
        sequence: ask.sequence,
        entries: acceptable(ask.entries),
        ..AuditBatch::default()
    };
    service.keep(&mut batch).await?;
    Ok(AuditResponse::default())
}

/// What of a batch may be kept. One entry that may not is counted as lost, and takes no other with it: its process says
/// the batch once, and what is wrong with it stays wrong.
fn acceptable(entries: Vec<AuditEntry>) -> Vec<AuditEntry> {
    let said = entries
        .into_iter()
        .filter(|entry| SAID.contains(&entry.kind.as_str()) && entry.count > 0);
    let (kept, refused): (Vec<AuditEntry>, Vec<AuditEntry>) = said.partition(|entry| {
        entry.workspace.is_empty() || workspace_id("workspace", &entry.workspace).is_ok()
    });
    let mut lost: BTreeMap<String, AuditEntry> = BTreeMap::new();
    for one in refused {
        let sum = lost.entry(one.kind.clone()).or_insert_with(|| AuditEntry {
            kind: LOST.to_owned(),
            operation: one.kind,
            reason: "refused".to_owned(),
            time: one.time,
            ..AuditEntry::default()
        });
        sum.count = sum.count.saturating_add(one.count);
        sum.time = sum.time.min(one.time);
        sum.until = sum.until.max(one.until);
    }
    if !lost.is_empty() {
        tracing::error!(
            kinds = lost.len(),
            "the audit refuses some of what was decided"
        );
    }
    kept.into_iter().chain(lost.into_values()).collect()
}

impl Handler {
    async fn list(
        &self,
        service: &CachedDirectory,
        ask: AuditRequest,
    ) -> Result<AuditResponse, Error> {
        let mut wanted = read(&ask)?;
        if self.auth_mode == AuthMode::Iam {
            let seen = service.seen_since(&ask.asker, &ask.workspace)?;
            wanted.since = wanted.since.max(seen);
        }
        // One more tells whether there is another page.
        let most = wanted.most as usize;
        wanted.most += 1;
        let (mut entries, dropped) = service.events(&wanted).await?;
        let mut bytes = 0;
        let fits = entries.iter().take_while(|entry| {
            let fits = bytes < limits::PAGE_BYTES;
            bytes += size(entry);
            fits
        });
        let fits = fits.count().min(most);
        let full = fits < entries.len();
        entries.truncate(fits);
        let last = entries.last().filter(|_| full);
        Ok(AuditResponse {
            next: last.map_or_else(String::new, |entry| entry.id.to_string()),
            entries,
            dropped,
            error: None,
        })
    }
}

/// How long ago: a number and its unit, in milliseconds.
fn span(text: &str) -> Option<i64> {
    let unit = match text.chars().next_back()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        _ => return None,
    };
    let number: u32 = text[..text.len() - 1].parse().ok()?;
    Some(i64::from(number) * unit * 1000)
}

fn read(ask: &AuditRequest) -> Result<AuditWanted, Error> {
    if ask.limit < 0 {
        return Err(invalid("limit", "must not be negative"));
    }
    let most = match ask.limit {
        0 => MOST,
        limit => limit.min(MOST),
    };
    let after = match ask.after.as_str() {
        "" => 0,
        text => text.parse().map_err(|_| no_cursor())?,
    };
    let time = |field: &str, text: &str| {
        if let Some(span) = span(text) {
            return Ok(Some(clock::millis() - span));
        }
        let moment = moment(field, text)?;
        Ok::<_, Error>(moment.map(|at| at.timestamp_millis()))
    };
    if !ask.kind.is_empty() && !KINDS.contains(&ask.kind.as_str()) {
        let known = format!("must be one of {}", KINDS.join(", "));
        return Err(invalid("kind", &known));
    }
    let named = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Ok(AuditWanted {
        workspace: named(&ask.workspace),
        actor: named(&ask.actor),
        kind: named(&ask.kind),
        since: time("since", &ask.since)?,
        until: time("until", &ask.until)?,
        after,
        most: u32::try_from(most).unwrap_or(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_that_may_not_be_kept_loses_no_other() {
        let entry = |kind: &str, workspace: &str, time: i64| AuditEntry {
            kind: kind.into(),
            workspace: workspace.into(),
            count: 2,
            time,
            until: time,
            ..AuditEntry::default()
        };
        let kept = acceptable(vec![
            entry(READ, "acme", 5),
            entry(READ, "a b", 4),
            entry(READ, "__iam__", 7),
            entry(REFUSED, "", 6),
            entry("change", "acme", 6),
            AuditEntry {
                count: 0,
                ..entry(READ, "acme", 5)
            },
        ]);
        let lost = AuditEntry {
            operation: READ.into(),
            reason: "refused".into(),
            count: 4,
            until: 7,
            ..entry(LOST, "", 4)
        };
        assert_eq!(kept, [entry(READ, "acme", 5), entry(REFUSED, "", 6), lost]);
    }

    #[test]
    fn what_is_asked_for_is_read_or_refused_by_its_field() {
        assert_eq!(span("2h"), Some(2 * 3600 * 1000));
        for none in ["", "h", "-1h", "2030-01-31", "99999999999d", "2ü"] {
            assert_eq!(span(none), None, "{none}");
        }
        let ask = |field: &str| AuditRequest {
            since: if field == "since" {
                "soon"
            } else {
                "2030-01-31"
            }
            .into(),
            after: if field == "after" { "x" } else { "7" }.into(),
            kind: if field == "kind" { "all" } else { "change" }.into(),
            limit: if field == "limit" { -1 } else { 5000 },
            ..AuditRequest::default()
        };
        for field in ["since", "after", "kind", "limit"] {
            let error = read(&ask(field)).unwrap_err();
            assert!(error.message.starts_with(field), "{error}");
        }
        let wanted = read(&ask("")).unwrap();
        assert_eq!((wanted.after, i64::from(wanted.most)), (7, MOST));
        assert_eq!(wanted.since, Some(1_896_048_000_000));
    }
}
