//! Taking a processing back.

use tg_schemas::Error;
use tg_schemas::msg::ProcessingMetadata;

use super::answer;
use crate::engine::asker::Asker;
use crate::engine::state::cancelled;
use crate::error::wire;
use crate::librarian::Librarian;

impl Librarian {
    /// Forgets a processing. One under way is cancelled: no more is cut from its document; records that are
    /// on their way still arrive, and what was stored stays until the document or collection goes. Returns
    /// how it stood. The next run of the document does everything again.
    pub(crate) async fn remove_processing(
        &self,
        asker: &Asker,
        id: &str,
    ) -> Result<Option<ProcessingMetadata>, Error> {
        let stood = self.rows().take_back(asker, id).await.map_err(wire)?;
        self.wake.notify_one();
        Ok(stood.map(|(run, left)| {
            let mut stood = answer::show(run);
            if let Some(left) = left {
                "stopped".clone_into(&mut stood.status);
                stood.error = cancelled(left);
            }
            stood
        }))
    }
}
