//! The processors `text-completion` and `text-completion-rag`.

use tg_mesh::{Mesh, Processor};
use tg_settings::Fault;

use crate::completer::Completer;
use crate::handler;
use crate::options::Options;

/// The processors of this service, to be hosted.
///
/// # Errors
/// The mistake in the options because of which the provider cannot be asked.
pub fn processors(_: &Mesh, options: Options) -> Result<Vec<Processor>, Fault> {
    let completer = Completer::new(options.model()?).with_backoff(options.backoff);
    Ok(handler::processors(completer))
}
