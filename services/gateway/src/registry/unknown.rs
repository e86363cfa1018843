//! What clients name and the table does not have.

use super::bulk::{EXPORTS, IMPORTS};
use super::flow_services::KINDS;
use super::services::{SERVICES, service};

/// What there is nothing of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// A service outside flows.
    Service,
    /// An operation of this one.
    Operation(&'static str),
    /// A kind of flow service.
    Kind,
    /// A kind of import.
    Import,
    /// A kind of export.
    Export,
}

/// Operations of a service that are types.
fn declared(service: &str) -> impl Iterator<Item = &'static str> {
    let all = tg_schemas::operations::ALL.iter();
    let own = all.filter(move |meta| meta.service == service);
    own.map(|meta| meta.name)
}

impl Unknown {
    /// What there is instead.
    pub(crate) fn known(self) -> String {
        let bulk = |table: &[(&'static str, _)]| table.iter().map(|row| row.0).collect();
        let names: Vec<&str> = match self {
            Self::Service => SERVICES.iter().map(|service| service.name).collect(),
            Self::Operation(name) => service(name)
                .into_iter()
                .flat_map(|service| service.operations.iter().flat_map(|row| row.1))
                .copied()
                .chain(declared(name))
                .collect(),
            Self::Kind => KINDS.iter().map(|kind| kind.name).collect(),
            Self::Import => bulk(IMPORTS),
            Self::Export => bulk(EXPORTS),
        };
        match self {
            Self::Service => format!("; the services are {}", names.join(", ")),
            Self::Operation(of) => format!("; those of {of} are {}", names.join(", ")),
            _ => format!("; the kinds are {}", names.join(", ")),
        }
    }
}
