//! What a tool returned, as it is passed on: within bounds, its pictures beside the text that they stand in.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use tg_schemas::limits;
use tg_schemas::msg::{ToolPicture, ToolResponse};

use crate::error::ToolError;

/// Largest message of a server: a result with pictures.
pub(super) const LARGEST: usize = limits::base64(limits::PICTURE) + 4 * limits::TOOL_RESULT;
/// Most pictures of a result; further ones are named alone.
const PICTURES: usize = 4;
/// What stands behind a text that was cut.
const SHORTENED: &str = "\n[shortened]";

/// Structured content if there is any, else the texts; other content is named.
pub(super) fn read(result: CallToolResult, pictures: bool) -> Result<ToolResponse, ToolError> {
    let mut text = String::new();
    let mut found = Vec::new();
    for (number, part) in result.content.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        if let ContentBlock::Image(image) = part
            && pictures
        {
            found.push(ToolPicture {
                data: image.data.clone(),
                mime_type: image.mime_type.clone(),
                at: i64::try_from(text.len()).unwrap_or(i64::MAX),
            });
        }
        text.push_str(&show(part));
    }
    let text = bounded(text);
    if result.is_error == Some(true) {
        return Err(ToolError::said(&text));
    }
    let structured = result.structured_content.filter(|value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        _ => true,
    });
    Ok(match structured {
        Some(value) => ToolResponse {
            object: bounded(value.to_string()),
            ..ToolResponse::default()
        },
        None => ToolResponse {
            pictures: within(found, &text),
            text,
            ..ToolResponse::default()
        },
    })
}

/// The first pictures, as many as a message holds with the text, and as are as large as pictures may be.
fn within(mut found: Vec<ToolPicture>, text: &str) -> Vec<ToolPicture> {
    let beside = limits::BESIDE_CONTENT + limits::JSON_GROWTH * text.len();
    let mut room = limits::MESSAGE.saturating_sub(beside);
    let end = text.strip_suffix(SHORTENED).map_or(text.len(), str::len);
    found.retain(|picture| {
        let whole = usize::try_from(picture.at).is_ok_and(|at| at + picture.marker().len() <= end);
        let most = limits::base64(limits::PICTURE).min(room);
        let fits = whole && picture.data.len() <= most;
        if fits {
            room -= picture.data.len();
        }
        fits
    });
    found.truncate(PICTURES);
    found
}

fn show(part: &ContentBlock) -> String {
    match part {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio, {}]", audio.mime_type),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, .. } => format!("[resource {uri}]"),
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {}]", link.uri),
        _ => "[content of another kind]".to_owned(),
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > limits::TOOL_RESULT {
        let mut at = limits::TOOL_RESULT;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
        text.push_str(SHORTENED);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn image(data: &str) -> Value {
        json!({"type": "image", "data": data, "mimeType": "image/png"})
    }

    fn result(parts: Vec<Value>, pictures: bool) -> ToolResponse {
        let result = serde_json::from_value(json!({"content": parts})).unwrap();
        read(result, pictures).unwrap()
    }

    #[test]
    fn pictures_come_with_their_places_where_they_are_wanted() {
        let parts = vec![
            json!({"type": "text", "text": "süß"}),
            image("QQ=="),
            image("Qg=="),
        ];
        let shown = "süß\n[image, image/png]\n[image, image/png]";
        assert_eq!(result(parts.clone(), false).pictures, []);
        let told = result(parts, true);
        assert_eq!(told.text, shown);
        let places: Vec<_> = told
            .pictures
            .iter()
            .map(|picture| {
                (
                    &*picture.data,
                    &told.text[usize::try_from(picture.at).unwrap()..],
                )
            })
            .collect();
        let second = "[image, image/png]";
        assert_eq!(places, [("QQ==", &shown[6..]), ("Qg==", second)]);
    }

    #[test]
    fn pictures_are_bounded_in_number_and_bytes() {
        let many = vec![image("QQ=="); PICTURES + 1];
        assert_eq!(result(many, true).pictures.len(), PICTURES);
        let largest = "A".repeat(limits::base64(limits::PICTURE));
        let parts = vec![
            image(&format!("{largest}AAAA")),
            image(&largest),
            image(&largest),
        ];
        let told = result(parts, true).pictures;
        assert_eq!((told.len(), told[0].data.len()), (1, largest.len()));
        let long = "x".repeat(limits::TOOL_RESULT);
        let parts = vec![json!({"type": "text", "text": long}), image("QQ==")];
        let told = result(parts, true);
        assert!(told.pictures.is_empty() && told.text.ends_with(SHORTENED));
    }
}
