//! Pictures: of the library (`image-to-text`), and those that tools return. The flow's own service says what they show.

use base64::Engine;
use tg_clients::library::{BASE64, Library};
use tg_clients::pictures::{Pictures, Shown};
use tg_schemas::msg::ToolPicture;
use tg_schemas::{Error, limits};

use super::tool_call::{Arguments, Call, Output, text};
use crate::engine::decision::Usage;
use crate::error::AgentError;

/// Bytes of a piece of a document.
const PIECE: usize = limits::CONTENT_PART;
/// What is asked of a picture where the model asks nothing.
const USUAL: &str = "Say what this picture shows, with all text that stands in it.";
/// What is asked of a picture that a tool returned.
const RETURNED: &str =
    "A tool returned this picture. Say what it shows, with all text that stands in it.";

/// Says what a picture of the library shows.
pub(super) async fn of_library(call: &Call<'_>, arguments: &Arguments) -> Result<Output, Error> {
    let pictures = Pictures::of_flow(call.cx).ok_or(AgentError::NoPictures)?;
    let library = Library::of_flow(call.cx);
    let id = text(arguments, "document-id");
    let about = library.describe(id).await?;
    if !about.kind.starts_with("image/") {
        return Err(AgentError::NoPicture(about.kind).into());
    }
    let mut content = library.stream(id, PIECE)?;
    let mut bytes = Vec::new();
    while let Some(piece) = content.next().await? {
        bytes.extend(piece);
        if bytes.len() > limits::PICTURE {
            return Err(AgentError::LargePicture.into());
        }
    }
    let question = match text(arguments, "question") {
        "" => USUAL,
        question => question,
    };
    let picture = (BASE64.encode(bytes), about.kind.as_str());
    let pictures = pictures.known_as(call.key.clone());
    let Shown { text, spent } = pictures.describe(picture, question).await?;
    Ok(Output {
        text,
        usage: Usage {
            in_token: spent.in_token.unwrap_or(0),
            out_token: spent.out_token.unwrap_or(0),
            // The run's model is the one that decides.
            ..Usage::default()
        },
        ..Output::default()
    })
}

/// A text with what its pictures show, each where it stood. What cannot be described is left as it is, with the reason.
pub(super) async fn described(call: &Call<'_>, text: String, pictures: Vec<ToolPicture>) -> Output {
    let mut output = Output::from(text);
    let Some(describing) = Pictures::of_flow(call.cx) else {
        return output;
    };
    let mut told = Vec::new();
    for (number, picture) in pictures.into_iter().enumerate() {
        let describing = describing.clone();
        let describing = describing.known_as(format!("{}/picture/{number}", call.key));
        let marker = picture.marker();
        let asked = (picture.data, picture.mime_type.as_str());
        let what = match describing.describe(asked, RETURNED).await {
            Ok(shown) => {
                output.usage.in_token += shown.spent.in_token.unwrap_or(0);
                output.usage.out_token += shown.spent.out_token.unwrap_or(0);
                shown.text.trim().to_owned()
            }
            Err(error) => format!("it could not be described: {}", error.message),
        };
        let inner = marker.trim_end_matches(']');
        told.push((picture.at, marker.clone(), format!("{inner}: {what}]")));
    }
    // From behind, so that what stands before keeps its place.
    for (at, marker, told) in told.into_iter().rev() {
        let Ok(at) = usize::try_from(at) else {
            continue;
        };
        let behind = output.text.get(at..);
        if behind.is_some_and(|text| text.starts_with(&marker)) {
            output.text.replace_range(at..at + marker.len(), &told);
        }
    }
    output
}
