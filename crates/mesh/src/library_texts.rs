//! Texts that a trace links to go to the library as records: they wait for a librarian that is away.

use tg_schemas::msg::{LIBRARY_TEXTS, LibraryText, LibraryTexts};
use tg_schemas::{Class, Error, Subscription, Topic};

use crate::scope::Cx;

fn topic() -> Topic {
    Topic::system(Class::Flow, LIBRARY_TEXTS)
}

/// The librarian's queue. Every process declares it, so that no text comes before it.
pub(crate) fn subscription() -> Subscription {
    Subscription::service(topic(), "librarian")
}

impl Cx {
    /// Gives texts to the library of this workspace: thoughts, observations and answers, under ids of a trace.
    /// Durable when `Ok`. For native mode: in interop the library may be a foreign one, which is asked.
    pub async fn store_texts(&self, texts: Vec<LibraryText>) -> Result<(), Error> {
        let record = LibraryTexts {
            workspace: self.workspace().to_owned(),
            texts,
        };
        self.record_on(&topic(), &record).await
    }
}
