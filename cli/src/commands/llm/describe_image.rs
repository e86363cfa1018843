//! `tg describe-image`: what a picture shows, in the model's words.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::json;

use crate::args::{InFlow, Options, subject};
use crate::client::{Call, Result};
use crate::fields::text;
use crate::files::read_bytes;
use crate::registry::Command;
use crate::session::Session;

subject!(
    file
    /// The picture.
    Picture,
    "File of the picture, `-` for standard input: PNG, JPEG, GIF or WebP",
    short = 'i',
    long = "image"
);

/// Arguments of `tg describe-image`.
#[derive(Debug, Args)]
pub struct DescribeImage {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    image: Picture,
    /// Its media type, where the name of the file does not say it
    #[arg(long, value_name = "TYPE")]
    mime_type: Option<String>,
    /// What to ask of it, e.g. "What is shown in this picture?"
    #[arg(short, long)]
    prompt: Option<String>,
    /// System prompt
    #[arg(short, long)]
    system: Option<String>,
}

impl Command for DescribeImage {
    const NAME: &'static str = "describe-image";
    const ABOUT: &'static str = "Have the model describe a picture";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let image = STANDARD.encode(read_bytes(self.image.path())?);
        let mime_type = match self.mime_type {
            Some(told) => told,
            None => media_type(self.image.path()).to_owned(),
        };
        let request = json!({
            "image": image,
            "mime_type": mime_type,
            "prompt": self.prompt.unwrap_or_default(),
            "system": self.system.unwrap_or_default(),
        });
        let call = Call::in_flow(&self.flow.flow_id, "image-to-text", request);
        let mut socket = session.socket().await?;
        let reply = socket.ask(&call).await?;
        socket.close().await;
        session.out.show(&reply, || text(&reply, "description"))
    }
}

/// The media type by a file's name; where it says none, the service goes by the first bytes.
fn media_type(file: &std::path::Path) -> &'static str {
    let ending = file.extension().unwrap_or_default().to_string_lossy();
    match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_says_its_media_type() {
        let told = |name: &str| media_type(std::path::Path::new(name));
        assert_eq!(told("a/B.JPG"), "image/jpeg");
        assert_eq!(told("b.png"), "image/png");
        assert_eq!(told("-"), "");
    }
}
