//! One question through one translator, as a stream of parts in the API form.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use tg_mesh::{Answer, Ask, Mesh};
use tg_schemas::{Error, ErrorCode, Reply, Topic};

use crate::engine::scrub::scrub_for;
use crate::engine::translate::{About, Body, Fields, Looked, PartBody, Translate};
use crate::giving_way::giving_way;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// From the service. `failed` says that the body carries an error; then it is the last.
    Body {
        /// The part in the API form.
        body: PartBody,
        /// No other part follows.
        last: bool,
        /// The body carries an error.
        failed: bool,
    },
    /// From the mesh or the gateway itself. Always the last.
    Error(Error),
}

impl Part {
    /// Whether it takes long to write: this is done off the runtime's threads.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self, Self::Body { body, .. } if body.is_long())
    }
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
    let (question, warnings) = read::<T>(body, about)?;
    let answer: Answer<T::Answer> = mesh.ask(topic, &question, options);
    let state = (answer, about.clone(), warnings, false);
    Ok(giving_way(stream::unfold(
        state,
        |(mut answer, about, warnings, over)| async move {
            if over {
                return None;
            }
            let part = loop {
                match answer.next().await {
                    Some(Ok(part)) if part.error().is_none() && T::is_aside(&part, &about) => {}
                    Some(Ok(part)) => break warned(translated::<T>(part, &about), &warnings),
                    Some(Err(error)) => break Part::Error(scrub_for(error, about.operator)),
                    None => {
                        break Part::Error(Error::new(
                            ErrorCode::Interrupted,
                            "the answer is incomplete",
                        ));
                    }
                }
            };
            let over = match &part {
                Part::Body { last, .. } => *last,
                Part::Error(_) => true,
            };
            Some((part, (answer, about, warnings, over)))
        },
    ))
    .boxed())
}

/// What is asked, and a sentence for each key of the body that it leaves out.
fn read<T: Translate>(body: &Body, about: &About) -> Result<(T::Question, Vec<Value>), Error> {
    if about.translated {
        let question = T::question(&Fields::new(body), about)?;
        return Ok((question, Vec::new()));
    }
    let looked = Looked::default();
    let question = T::question(&Fields::watched(body, &looked), about)?;
    Ok((question, looked.warnings(body)))
}

/// The last part says what of the request was not read, before what the service itself went on without.
fn warned(part: Part, warnings: &[Value]) -> Part {
    match part {
        Part::Body {
            body,
            last: true,
            failed: false,
        } if !warnings.is_empty() => Part::Body {
            body: body.warned(warnings.to_vec()),
            last: true,
            failed: false,
        },
        part => part,
    }
}

/// A part of a service in the API form.
pub(crate) fn translated<T: Translate>(part: T::Answer, about: &About) -> Part {
    match part.error().cloned() {
        Some(error) => Part::Body {
            body: T::failure(&scrub_for(error, about.operator), part).into(),
            last: true,
            failed: true,
        },
        None => Part::Body {
            last: part.is_last(),
            body: T::part_body(part, about),
            failed: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::translate::chat::Chat;

    #[test]
    fn only_keys_that_a_client_wrote_are_looked_for() {
        let body = json!({"messages": [], "temprature": 1});
        let body = body.as_object().cloned().unwrap_or_default();
        let warnings = |translated: bool| {
            let about = About {
                translated,
                ..About::default()
            };
            let (_, warnings) = read::<Chat>(&body, &about).unwrap();
            warnings.len()
        };
        assert_eq!((warnings(false), warnings(true)), (1, 0));
    }

    #[test]
    fn what_a_service_went_without_stands_behind_what_was_not_read() {
        let part = |warnings: Value| {
            let mut body = Body::new();
            body.insert("warnings".to_owned(), warnings);
            Part::Body {
                body: body.into(),
                last: true,
                failed: false,
            }
        };
        for (unread, told) in [
            (vec![], json!(["b"])),
            (vec![json!("a")], json!(["a", "b"])),
        ] {
            let Part::Body { body, .. } = warned(part(json!(["b"])), &unread) else {
                panic!("a body");
            };
            assert_eq!(body.into_tree()["warnings"], told);
        }
    }
}
