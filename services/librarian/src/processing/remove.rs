//! Taking a processing back.

use tg_schemas::Error;
use tg_schemas::msg::ProcessingMetadata;
use tg_storage::StorageError;

use super::answer;
use crate::engine::state::State;
use crate::fault::missing_processing;
use crate::library::Asker;
use crate::service::Librarian;
use crate::store::{self, made, run};

impl Librarian {
    /// Forgets a processing. One under way is cancelled: no more is cut from its document; records that are
    /// on their way still arrive, and what was stored stays until the document or collection goes. Returns
    /// how it stood. The next run of the document does everything again.
    pub(crate) async fn remove_processing(
        &self,
        asker: &Asker,
        id: &str,
    ) -> Result<Option<ProcessingMetadata>, Error> {
        let (asker, id) = (asker.clone(), id.to_owned());
        let stood = self
            .library
            .write(move |tx| {
                let known = run::listed(tx, &asker.workspace, &id)?;
                let new = store::note(tx, &asker.question)?;
                let Some(run) = known else {
                    return match new {
                        true => Err(StorageError::Refused(missing_processing())),
                        false => Ok(None),
                    };
                };
                made::undone(tx, &run.target)?;
                let number = run.number;
                let under_way = matches!(run.state, State::Starting | State::Running)
                    && !run.counts.is_still();
                let left = run.counts.expected - run.counts.settled;
                let mut stood = answer::show(tx, run, 0)?;
                if under_way {
                    let why = format!(
                        "cancelled: {left} records known to be under way still arrive; what is stored stays"
                    );
                    run::unlist(tx, number)?;
                    run::set_state(tx, number, State::Cancelled, &why)?;
                    "stopped".clone_into(&mut stood.status);
                    stood.error = why;
                } else {
                    run::delete(tx, number)?;
                }
                Ok(Some(stood))
            })
            .await?;
        self.wake.notify_one();
        Ok(stood)
    }
}
