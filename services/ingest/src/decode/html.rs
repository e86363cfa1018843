//! HTML to Markdown. Scripts, styles, menus and what is not shown are left out.

use htmd::HtmlToMarkdown;
use htmd::options::Options;
use tg_document::charset;
use tg_document::text::{leniently, tidy};

use super::frames::DecodeError;
use super::page;

const SKIPPED: &[&str] = &[
    "nav", "script", "style", "noscript", "template", "head", "iframe", "svg", "canvas", "object",
    "img", "video", "audio", "input", "select", "button",
];

pub(super) fn decode(input: &[u8]) -> Result<String, DecodeError> {
    let (text, _) = leniently(input, charset::of_html(input));
    let tree = page::parse(&text).ok_or(DecodeError::Damaged)?;
    let converter = HtmlToMarkdown::builder()
        .skip_tags(SKIPPED.to_vec())
        .options(Options {
            ul_bullet_spacing: 1,
            ol_number_spacing: 1,
            ..Options::default()
        })
        .build();
    Ok(tidy(&converter.tree_to_markdown(&tree)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::page::{DEEPEST, DEEPEST_INDENTED};

    #[test]
    fn nesting_is_bounded() {
        let lists = |depth: usize| "<ul><li>x".repeat(depth);
        assert!(decode(lists(DEEPEST_INDENTED).as_bytes()).is_ok());
        let deeper = lists(DEEPEST_INDENTED + 1);
        assert_eq!(decode(deeper.as_bytes()), Err(DecodeError::Damaged));
        let spans = "<span>".repeat(DEEPEST);
        assert_eq!(decode(spans.as_bytes()), Err(DecodeError::Damaged));
        let flat = "<ul><li>a<li>b<OL ><li>c</ol></ul><blockquote>d</blockquote>";
        let text = decode(flat.repeat(DEEPEST).as_bytes()).expect("decoded");
        assert!(text.starts_with("* a\n* b\n"), "{text:.40}");
    }
}
