//! Providers of embeddings: letters, files, endpoints. A closed list.

pub mod endpoint;
#[cfg(test)]
mod fuzz;
pub mod lexical;
pub mod statics;
pub mod table;

use std::sync::Arc;

use crate::error::EmbedError;
use endpoint::{Dialect, Endpoint};
use statics::StaticModel;

/// Who makes vectors.
#[derive(Debug, Clone)]
pub enum Provider {
    /// Hashed words and runs of characters.
    Lexical,
    /// A table of token vectors.
    Static {
        /// Its name.
        name: String,
        /// The table.
        model: Arc<StaticModel>,
    },
    /// A server.
    Endpoint {
        /// The server.
        server: Arc<Endpoint>,
        /// Model when a flow names none.
        model: String,
    },
}

/// A model of a provider, as chosen for a request.
#[derive(Debug, Clone)]
pub(crate) enum Model {
    Lexical,
    Static(Arc<StaticModel>),
    Endpoint(Arc<Endpoint>, Arc<str>),
}

impl Provider {
    /// The model that serves, and its name in answers. A flow may name another model of a server;
    /// `lexical` is always there.
    pub(crate) fn choose(&self, asked: Option<&str>) -> Result<(Model, String), EmbedError> {
        let asked = asked.filter(|name| !name.is_empty());
        if asked == Some(lexical::NAME) {
            return Ok((Model::Lexical, lexical::NAME.to_owned()));
        }
        match self {
            Self::Lexical => match asked {
                None => Ok((Model::Lexical, lexical::NAME.to_owned())),
                Some(_) => Err(EmbedError::UnknownModel(None)),
            },
            Self::Static { name, model } => match asked {
                Some(other) if other != name => Err(EmbedError::UnknownModel(None)),
                _ => Ok((Model::Static(model.clone()), format!("static/{name}"))),
            },
            Self::Endpoint { server, model } => {
                let model = asked.unwrap_or(model);
                let dialect = match server.dialect() {
                    Dialect::OpenAi => "openai",
                    Dialect::Ollama => "ollama",
                };
                let name = format!("{dialect}/{model}");
                Ok((Model::Endpoint(server.clone(), model.into()), name))
            }
        }
    }
}

impl Provider {
    /// The model of a name in answers, with its dimension, and that name without it; whatever a flow asks for.
    pub(crate) fn exactly(&self, named: &str) -> Result<(Model, String), EmbedError> {
        let unknown = || EmbedError::UnknownModel(None);
        let (name, dimension) = named.rsplit_once('/').ok_or_else(unknown)?;
        let dimension: usize = dimension.parse().map_err(|_| unknown())?;
        let asked = match name.split_once('/') {
            None => name,
            Some((_, model)) => model,
        };
        let (model, chosen) = self.choose(Some(asked))?;
        let other = model.dimension().is_some_and(|own| own != dimension);
        match chosen == name && !other {
            true => Ok((model, chosen)),
            false => Err(unknown()),
        }
    }
}

impl Model {
    /// Numbers of its vectors, if that is known before it is asked.
    pub(crate) fn dimension(&self) -> Option<usize> {
        match self {
            Self::Lexical => Some(lexical::DIMENSION),
            Self::Static(model) => Some(model.dimension()),
            Self::Endpoint(..) => None,
        }
    }
}

#[cfg(test)]
mod tests;
