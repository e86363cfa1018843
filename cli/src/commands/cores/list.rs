//! `tg show-kg-cores`, `tg delete-kg-core` and the same for document embeddings.

use std::marker::PhantomData;

use clap::Args;
use serde_json::{Value, json};

use super::kind::Kind;
use super::{CoreId, SERVICE};
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::fields::texts;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-kg-cores` and `tg show-de-cores`.
#[derive(Debug, Args)]
pub struct Show<K: Kind> {
    #[command(flatten)]
    common: Common,
    #[arg(skip)]
    kind: PhantomData<K>,
}

impl<K: Kind> Command for Show<K> {
    const NAME: &'static str = K::SHOW.0;
    const ABOUT: &'static str = K::SHOW.1;

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": K::LIST});
        let reply = session.http()?.all(SERVICE, request).await?;
        if reply.get("ids").is_none() {
            return Err(Error::Protocol("no ids in the reply".to_owned()));
        }
        let ids = texts(&reply, "ids");
        session
            .out
            .show(&Value::from(ids.clone()), || match ids.as_slice() {
                [] => "No cores.".to_owned(),
                ids => ids.join("\n"),
            })
    }
}

/// Arguments of `tg delete-kg-core` and `tg delete-de-core`.
#[derive(Debug, Args)]
pub struct Delete<K: Kind> {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    core: CoreId,
    #[arg(skip)]
    kind: PhantomData<K>,
}

impl<K: Kind> Command for Delete<K> {
    const NAME: &'static str = K::DELETE.0;
    const ABOUT: &'static str = K::DELETE.1;

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": Self::NAME, "id": self.core.id()});
        session.http()?.service(SERVICE, request).await?;
        let done = json!({"id": self.core.id(), "deleted": true});
        session.out.show(&done, String::new)
    }
}
