//! One question through one translator, as a stream of parts in the API form.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tg_mesh::{Answer, Ask, Mesh};
use tg_schemas::{Error, ErrorCode, Message, Reply, Topic};

use crate::scrub::scrub;
use crate::translate::{About, Body, Fields, Translate, load};

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// From the service. `failed` says that the body carries an error; then it is the last.
    Body {
        /// The part in the API form.
        body: Body,
        /// No other part follows.
        last: bool,
        /// The body carries an error.
        failed: bool,
    },
    /// From the mesh or the gateway itself. Always the last.
    Fault(Error),
}

/// All parts of an answer.
pub(crate) type Parts = BoxStream<'static, Part>;

/// Translates a body, asks, and translates what comes back.
pub(crate) type Asks = fn(&Mesh, &Topic, &Body, &About, Ask) -> Result<Parts, Error>;

/// Asks a question through a translator.
pub(crate) fn ask<T: Translate>(
    mesh: &Mesh,
    topic: &Topic,
    body: &Body,
    about: &About,
    options: Ask,
) -> Result<Parts, Error> {
    let question = T::question(&Fields::new(body), about)?;
    let answer: Answer<T::Answer> = mesh.ask(topic, &question, options);
    let state = (answer, about.clone(), false);
    Ok(
        stream::unfold(state, |(mut answer, about, over)| async move {
            if over {
                return None;
            }
            let part = match answer.next().await {
                Some(Ok(part)) => translated::<T>(part, &about),
                Some(Err(error)) => Part::Fault(scrub(error)),
                None => Part::Fault(Error::new(
                    ErrorCode::Interrupted,
                    "the answer ended before its end",
                )),
            };
            let over = match &part {
                Part::Body { last, .. } => *last,
                Part::Fault(_) => true,
            };
            Some((part, (answer, about, over)))
        })
        .boxed(),
    )
}

fn translated<T: Translate>(part: T::Answer, about: &About) -> Part {
    match part.error().cloned() {
        Some(error) => Part::Body {
            body: T::failure(&scrub(error), part),
            last: true,
            failed: true,
        },
        None => Part::Body {
            last: part.is_last(),
            body: T::part(part, about),
            failed: false,
        },
    }
}

/// Writes a record and answers with an empty object once it is safe.
fn record<M: Message>(mesh: &Mesh, topic: &Topic, message: M, options: Ask) -> Parts {
    let (mesh, topic) = (mesh.clone(), topic.clone());
    stream::once(async move {
        match mesh.record(&topic, &message, options).await {
            Ok(()) => Part::Body {
                body: Body::new(),
                last: true,
                failed: false,
            },
            Err(error) => Part::Fault(scrub(error)),
        }
    })
    .boxed()
}

/// `text-load`.
pub(crate) fn text_load(
    mesh: &Mesh,
    topic: &Topic,
    body: &Body,
    about: &About,
    options: Ask,
) -> Result<Parts, Error> {
    let document = load::text(&Fields::new(body), about)?;
    Ok(record(mesh, topic, document, options))
}

/// `document-load`.
pub(crate) fn document_load(
    mesh: &Mesh,
    topic: &Topic,
    body: &Body,
    about: &About,
    options: Ask,
) -> Result<Parts, Error> {
    let document = load::document(&Fields::new(body), about)?;
    Ok(record(mesh, topic, document, options))
}

/// A service that this release does not have.
pub(crate) fn not_built(
    _mesh: &Mesh,
    _topic: &Topic,
    _body: &Body,
    about: &About,
    _options: Ask,
) -> Result<Parts, Error> {
    let what = if about.operation.is_empty() {
        about.kind
    } else {
        about.operation.as_str()
    };
    Err(Error::new(
        ErrorCode::NotImplemented,
        format!("{what}: not part of this release"),
    ))
}
