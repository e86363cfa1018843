//! Sums of what calls took, by name and day: those of several calls are added up before they are written.

use std::collections::BTreeMap;

use tg_storage::StorageError;
use tg_storage::rusqlite::{Transaction, params};

use crate::engine::usage::{Amount, Scope};
use crate::store::Used;

/// Most that is kept of a count, so that no sum of them is larger than an integer of SQLite, whatever a provider says.
const MOST: i64 = 1 << 53;

/// A count as it is kept.
pub(super) fn kept(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(MOST).min(MOST)
}

/// Adds to what is summed up by a name and a day.
const ADD: &str =
    "INSERT INTO usage_total (workspace, scope, name, day, model_calls, tool_calls, in_token,
       out_token, nanodollars, duration_ms, most_tokens, most_nanodollars, cache_read, cache_write)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?15, ?13, ?14)
     ON CONFLICT (workspace, scope, name, day) DO UPDATE SET
       model_calls = MIN(model_calls + excluded.model_calls, ?12),
       tool_calls = MIN(tool_calls + excluded.tool_calls, ?12),
       in_token = MIN(in_token + excluded.in_token, ?12),
       out_token = MIN(out_token + excluded.out_token, ?12),
       nanodollars = MIN(nanodollars + excluded.nanodollars, ?12),
       duration_ms = MIN(duration_ms + excluded.duration_ms, ?12),
       cache_read = MIN(cache_read + excluded.cache_read, ?12),
       cache_write = MIN(cache_write + excluded.cache_write, ?12),
       most_tokens = MAX(most_tokens, excluded.most_tokens),
       most_nanodollars = MAX(most_nanodollars, excluded.most_nanodollars)";

/// What they are summed up by.
const SCOPES: [Scope; 5] = [
    Scope::Run,
    Scope::Session,
    Scope::Workspace,
    Scope::Key,
    Scope::Agent,
];

/// Workspace, scope, name and day.
type Name<'a> = (&'a str, &'static str, &'a str, &'a str);

/// What calls of one name took on a day, and the most that one of them took.
#[derive(Default)]
struct Sum {
    amount: Amount,
    most_tokens: u64,
    most_nanodollars: u64,
}

/// Sums that are not written yet.
#[derive(Default)]
pub(super) struct Totals<'a>(BTreeMap<Name<'a>, Sum>);

impl<'a> Totals<'a> {
    /// Adds what counts of a call, for each whom it counts for. How large calls are follows from what was reported alone: an estimate
    /// that raised the next reservation, which is the next estimate, would grow with each call.
    pub(super) fn add(&mut self, used: &'a Used, amount: &Amount) {
        let account = &used.account;
        let of_account = SCOPES.into_iter().filter_map(|scope| {
            let name = account.name(scope)?;
            Some((scope, name))
        });
        let (scope, name) = &used.by;
        let by = (!name.is_empty()).then_some((*scope, name.as_str()));
        for (scope, name) in of_account.chain(by) {
            let name = (
                account.workspace.as_str(),
                scope.as_str(),
                name,
                used.day.as_str(),
            );
            let sum = self.0.entry(name).or_default();
            sum.amount = sum.amount.and(amount);
            sum.most_tokens = sum.most_tokens.max(used.amount.tokens());
            sum.most_nanodollars = sum.most_nanodollars.max(used.amount.nanodollars);
        }
    }

    /// Writes them.
    pub(super) fn write(self, tx: &Transaction<'_>) -> Result<(), StorageError> {
        if self.0.is_empty() {
            return Ok(());
        }
        // Looked up once: by its text, which is long.
        let mut total = tx.prepare_cached(ADD)?;
        for ((workspace, scope, name, day), sum) in &self.0 {
            let amount = &sum.amount;
            total.execute(params![
                workspace,
                scope,
                name,
                day,
                kept(amount.model_calls),
                kept(amount.tool_calls),
                kept(amount.in_token),
                kept(amount.out_token),
                kept(amount.nanodollars),
                kept(amount.duration_ms),
                kept(sum.most_tokens),
                MOST,
                kept(amount.cache_read),
                kept(amount.cache_write),
                kept(sum.most_nanodollars)
            ])?;
        }
        Ok(())
    }
}
