//! Listens to what passes in one's own workspace while the other one is filled: nothing of the other may be heard.

use std::time::Duration;

use super::doors::{Trial, Way};
use super::probe::Asker;
use super::report::Report;
use super::scratch::{OWN_FLOW, Scratch};
use super::sockets::Direction;
use super::verdict::{Leak, is_in};
use crate::client::{Error, Export, Passed, Result};

/// Longest wait for a record of one's own.
const TIMEOUT: Duration = Duration::from_secs(20);
/// What is written to one's own workspace after the other's: when it was heard, the other's would have been.
const OWN_WORD: &str = "from-own";

/// Writes a record of each kind to the other workspace, while who may most in their own listens there; and then one to
/// their own, which must be heard.
///
/// # Errors
/// As [`Asker::listen`] and [`Scratch::write_other`]; [`Error::Check`] where nothing of one's own is heard.
pub async fn listen(
    trials: &[Trial],
    scratch: &Scratch,
    askers: &[Asker],
    report: &mut Report,
) -> Result<()> {
    let Some(asker) = askers.last() else {
        return Ok(());
    };
    for trial in trials {
        let Way::Upgrade(Direction::Live, kind) = &trial.way else {
            continue;
        };
        let mut export = asker.listen(OWN_FLOW, kind).await?;
        scratch.write_other(kind).await?;
        scratch.write_own(kind, OWN_WORD).await?;
        let heard = tokio::time::timeout(TIMEOUT, heard(&mut export)).await;
        export.close().await;
        let heard = heard.unwrap_or(Err(Error::Timeout(TIMEOUT.as_secs())));
        let heard = heard.map_err(|error| {
            Error::Check(format!(
                "{kind}: a record of one's own is not heard: {error}"
            ))
        })?;
        let fault = is_in(&heard, &scratch.marker).then_some(Leak::Shown);
        report.add(trial, (asker.role, "upgrade", false), 200, fault);
    }
    Ok(())
}

/// All that is heard until the record of one's own.
async fn heard(export: &mut Export) -> Result<String> {
    let mut text = String::new();
    while !text.contains(OWN_WORD) {
        match export.next().await? {
            Passed::Record(record) => text.push_str(&record.to_string()),
            Passed::Ended => return Err(Error::Check("the export ended".to_owned())),
            Passed::Interrupted => return Err(Error::Interrupted),
        }
    }
    Ok(text)
}
