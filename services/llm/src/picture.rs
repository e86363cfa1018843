//! A picture as models take it: of a media type that all of them read, and no larger than they allow.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_schemas::limits;

use crate::error::LlmError;

/// A picture that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its media type, which its first bytes bear out.
    pub media_type: &'static str,
    /// Its bytes in base64.
    pub base64: String,
}

impl Picture {
    /// Looks at a picture that somebody sent. Without a media type its first bytes say it.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn read(base64: String, media_type: &str) -> Result<Self, LlmError> {
        if base64.len() > limits::base64(limits::PICTURE) {
            return Err(LlmError::LargePicture);
        }
        let bytes = STANDARD.decode(&base64).map_err(|_| LlmError::NoPicture)?;
        if bytes.len() > limits::PICTURE {
            return Err(LlmError::LargePicture);
        }
        let found = sniff(&bytes);
        let told = media_type.split(';').next().unwrap_or_default().trim();
        let told = match told.to_ascii_lowercase().as_str() {
            "" => None,
            "image/jpg" | "image/jpeg" => Some("image/jpeg"),
            "image/png" => Some("image/png"),
            "image/gif" => Some("image/gif"),
            "image/webp" => Some("image/webp"),
            _ => return Err(LlmError::MediaType),
        };
        match (found, told) {
            (None, _) => Err(LlmError::NoPicture),
            (Some(found), Some(told)) if found != told => Err(LlmError::OtherPicture),
            (Some(media_type), _) => Ok(Self { media_type, base64 }),
        }
    }

    /// It and its media type as one address.
    pub(crate) fn data_uri(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.base64)
    }
}

/// The media type that the first bytes are of.
fn sniff(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    fn read(bytes: &[u8], media_type: &str) -> Result<&'static str, LlmError> {
        Picture::read(STANDARD.encode(bytes), media_type).map(|picture| picture.media_type)
    }

    #[test]
    fn the_media_type_is_what_the_bytes_are() {
        assert_eq!(read(PNG, "image/png"), Ok("image/png"));
        assert_eq!(read(PNG, " Image/PNG; q=1"), Ok("image/png"));
        assert_eq!(read(PNG, ""), Ok("image/png"));
        assert_eq!(read(b"\xff\xd8\xff\xe0", "image/jpg"), Ok("image/jpeg"));
        assert_eq!(read(b"GIF89a", "image/gif"), Ok("image/gif"));
        assert_eq!(read(b"RIFF\0\0\0\0WEBPVP8 ", ""), Ok("image/webp"));
        assert_eq!(read(PNG, "image/gif"), Err(LlmError::OtherPicture));
        assert_eq!(read(PNG, "image/svg+xml"), Err(LlmError::MediaType));
        assert_eq!(read(PNG, "image/png\r\nx"), Err(LlmError::MediaType));
        assert_eq!(read(b"hello", "image/png"), Err(LlmError::NoPicture));
        let error = Picture::read("%".to_owned(), "image/png");
        assert_eq!(error, Err(LlmError::NoPicture));
    }

    #[test]
    fn a_picture_has_a_bound() {
        let mut bytes = PNG.to_vec();
        bytes.resize(limits::PICTURE, 0);
        assert_eq!(read(&bytes, "image/png"), Ok("image/png"));
        bytes.push(0);
        assert_eq!(read(&bytes, "image/png"), Err(LlmError::LargePicture));
        bytes.resize(limits::PICTURE + 100, 0);
        assert_eq!(read(&bytes, "image/png"), Err(LlmError::LargePicture));
    }
}
