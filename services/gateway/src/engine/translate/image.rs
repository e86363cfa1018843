//! `image-to-text`: a picture described.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_schemas::Error;
use tg_schemas::msg::{ImageToTextRequest, ImageToTextResponse};

use super::base64::bytes;
use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `image-to-text` service.
pub struct ImageToText;

impl Translate for ImageToText {
    type Question = ImageToTextRequest;
    type Answer = ImageToTextResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        let image = bytes(&body.required_text("image")?).filter(|bytes| !bytes.is_empty());
        let image = image.ok_or_else(|| body.fault("image", "must be base64"))?;
        Ok(ImageToTextRequest {
            // In one line, as models take it.
            image: STANDARD.encode(image),
            mime_type: body.text("mime_type")?,
            prompt: body.text("prompt")?,
            system: body.text("system")?,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        Reply::new()
            .put("description", part.description)
            .put_some("in_token", part.in_token)
            .put_some("out_token", part.out_token)
            .put_some("model", part.model)
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;

    #[test]
    fn an_image_is_base64() {
        let request = question::<ImageToText>(
            json!({"image": "aGk=", "mime_type": "image/png", "system": null}),
            "",
        );
        assert_eq!(request.unwrap().mime_type, "image/png");
        for written in ["aG\nk=\n", "aGk", "data:image/png;base64,aGk="] {
            let request = question::<ImageToText>(json!({"image": written}), "");
            assert_eq!(request.unwrap().image, "aGk=", "{written}");
        }
        for wrong in [json!({"image": "%"}), json!({"image": ""})] {
            let error = question::<ImageToText>(wrong, "").unwrap_err();
            assert_eq!(error.message, "image: must be base64");
        }
        let reply = ImageToTextResponse {
            description: "a cat".into(),
            in_token: Some(3),
            ..Default::default()
        };
        assert_eq!(
            part::<ImageToText>(reply, ""),
            json!({"description": "a cat", "in_token": 3})
        );
    }
}
