//! HTML to Markdown. Scripts, styles and what is not shown are left out.

use htmd::HtmlToMarkdown;
use htmd::options::Options;

use super::frames::Fault;
use crate::engine::text::{TextDecoder, tidy};

const SKIPPED: &[&str] = &[
    "script", "style", "noscript", "template", "head", "iframe", "svg", "canvas", "object", "img",
    "video", "audio", "input", "select", "button",
];

pub(super) fn decode(input: &[u8]) -> Result<String, Fault> {
    let mut text = String::new();
    let mut decoder = TextDecoder::default();
    let decoded = decoder.push(input, &mut text);
    if decoded.and_then(|()| decoder.finish(&mut text)).is_err() {
        // Old pages say their encoding in a tag or not at all; the web reads them like this.
        text = input.iter().map(|byte| char::from(*byte)).collect();
    }
    let converter = HtmlToMarkdown::builder()
        .skip_tags(SKIPPED.to_vec())
        .options(Options {
            ul_bullet_spacing: 1,
            ol_number_spacing: 1,
            ..Options::default()
        })
        .build();
    let markdown = converter.convert(&text).map_err(|_| Fault::Damaged)?;
    Ok(tidy(&markdown))
}
