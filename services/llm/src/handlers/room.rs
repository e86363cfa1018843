//! Before a model is asked: whether it can read enough at once.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tg_compaction::{MODEL_TYPE, said, window};
use tg_mesh::{Cx, warn_of};

use crate::engine::context::{Room, room};
use crate::error::LlmError;
use crate::model::ChatRequest;
use crate::provider_client::ProviderClient;

/// Config types that are watched for it.
pub(crate) const WATCHED: &[&str] = &[MODEL_TYPE];
/// Warnings of which it is remembered that they were logged.
const KEEP: usize = 1024;

/// What is known of the windows of models.
#[derive(Default)]
pub(crate) struct Rooms {
    /// Tokens that any model reads at once, where nothing else is said; 0: nothing is.
    pub(crate) usual: u64,
    /// Models, and rows that cannot be read, that this process has logged.
    warned: Mutex<BTreeSet<String>>,
}

impl Rooms {
    /// With what the settings say of all models.
    pub(crate) fn of(usual: u64) -> Self {
        Self {
            usual,
            ..Self::default()
        }
    }

    /// Leaves out of a request the models that read too little, the first one and those after it alike. The builtin reader
    /// reads what it is given.
    ///
    /// # Errors
    /// [`LlmError::SmallWindow`] of the first model where none is left.
    pub(super) fn check(
        &self,
        cx: &Cx,
        client: &ProviderClient,
        request: &mut ChatRequest,
    ) -> Result<(), LlmError> {
        if client.origin.is_none() {
            return Ok(());
        }
        let fits = |model: &str| self.fits(cx, client, model);
        request
            .fallbacks
            .retain(|model| fits(model.as_str()).is_ok());
        let usual = client.client.model().default_model();
        if let Err(error) = fits(request.model.as_deref().unwrap_or(usual)) {
            if request.fallbacks.is_empty() {
                return Err(error);
            }
            request.model = Some(request.fallbacks.remove(0));
        }
        Ok(())
    }

    /// Whether a model may be asked.
    fn fits(&self, cx: &Cx, client: &ProviderClient, model: &str) -> Result<(), LlmError> {
        let row = cx.config().get(cx.workspace(), MODEL_TYPE, model);
        let own = row.and_then(|row| match said(&row) {
            Ok(window) => Some(window),
            Err(fault) => {
                if self.is_new(&format!("{}/{model}", cx.workspace())) {
                    warn_of!(cx, model, fault, "the row of a model cannot be read");
                }
                None
            }
        });
        let window = window(own, client.client.window(model), Some(self.usual));
        if self.is_to_warn(model, window)? {
            warn_of!(cx, model, window, "the model can read little at once");
        }
        Ok(())
    }

    /// Whether to warn of a model that may be asked: once, if its window is small.
    fn is_to_warn(&self, model: &str, window: u64) -> Result<bool, LlmError> {
        match room(window) {
            Room::Enough => Ok(false),
            Room::Little => Ok(self.is_new(model)),
            Room::TooLittle => Err(LlmError::SmallWindow(window)),
        }
    }

    fn is_new(&self, what: &str) -> bool {
        let mut warned = self.warned.lock();
        warned.len() < KEEP && warned.insert(what.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 95: once by model and process.
    #[test]
    fn line_095_a_model_is_warned_of_once() {
        let rooms = Rooms::default();
        for model in ["small", "other"] {
            assert_eq!(rooms.is_to_warn(model, 16_000), Ok(true));
            assert_eq!(rooms.is_to_warn(model, 31_999), Ok(false));
        }
        assert_eq!(rooms.is_to_warn("large", 32_000), Ok(false));
        let unsaid = window(None, None, Some(0));
        assert_eq!(rooms.is_to_warn("unsaid", unsaid), Ok(false));
        let small = LlmError::SmallWindow(15_999);
        assert_eq!(rooms.is_to_warn("tiny", 15_999), Err(small));
    }
}
