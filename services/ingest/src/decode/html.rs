//! HTML to Markdown. Scripts, styles and what is not shown are left out.

use htmd::HtmlToMarkdown;
use htmd::options::Options;

use super::frames::Fault;
use crate::engine::text::{TextDecoder, tidy};

const SKIPPED: &[&str] = &[
    "script", "style", "noscript", "template", "head", "iframe", "svg", "canvas", "object", "img",
    "video", "audio", "input", "select", "button",
];

/// Elements whose content is indented once more by each of them, so that their nesting costs its square.
const INDENTED: &[&str] = &["ul", "ol", "dl", "blockquote"];
/// How deep these may be nested. No page that people read comes near it.
const DEEPEST: usize = 256;

pub(super) fn decode(input: &[u8]) -> Result<String, Fault> {
    let mut text = String::new();
    let mut decoder = TextDecoder::default();
    let decoded = decoder.push(input, &mut text);
    if decoded.and_then(|()| decoder.finish(&mut text)).is_err() {
        // Old pages say their encoding in a tag or not at all; the web reads them like this.
        text = input.iter().map(|byte| char::from(*byte)).collect();
    }
    if nesting(&text) > DEEPEST {
        return Err(Fault::Damaged);
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

/// How deep elements of [`INDENTED`] are nested at most, as their tags tell.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in text.split('<').skip(1) {
        let (ends, tag) = match tag.strip_prefix('/') {
            Some(tag) => (true, tag),
            None => (false, tag),
        };
        let end = tag.find(|c: char| !c.is_ascii_alphanumeric());
        let name = &tag[..end.unwrap_or(tag.len())];
        if INDENTED
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
        {
            depth = if ends {
                depth.saturating_sub(1)
            } else {
                depth + 1
            };
            deepest = deepest.max(depth);
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_bounded_before_it_costs() {
        assert_eq!(nesting("<ul><li>a<li><OL ><li>b</ol></ul><ul></ul>"), 2);
        assert_eq!(nesting("</ul><p>no list <ulx> 1 < 2"), 0);
        let page = |depth: usize| "<ul><li>x".repeat(depth);
        assert!(decode(page(DEEPEST).as_bytes()).is_ok());
        assert_eq!(decode(page(DEEPEST + 1).as_bytes()), Err(Fault::Damaged));
    }
}
