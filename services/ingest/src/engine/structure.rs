//! What a text is made of, by its kind: where it is cut follows from that.

use super::recursive::{self, Slice};
use super::{code, markdown};

/// How a text is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Structure {
    /// Paragraphs and lines.
    #[default]
    Plain,
    /// Headings, lists, tables, blocks of code: Markdown, and what HTML and Word documents become.
    Markdown,
    /// Items that begin at the margin.
    Code,
    /// One record a line, the names of the columns in the first.
    Rows,
}

impl Structure {
    /// By a MIME type; plain for what is not known.
    pub fn of(mime: &str) -> Self {
        let essence = mime.split(';').next().unwrap_or_default().trim();
        match essence.to_ascii_lowercase().as_str() {
            "text/markdown" => Self::Markdown,
            "text/csv" | "application/csv" | "text/tab-separated-values" => Self::Rows,
            "text/javascript" => Self::Code,
            other if other.starts_with("text/x-") => Self::Code,
            _ => Self::Plain,
        }
    }

    /// Cuts a text into slices of about `size` characters, in order. Whatever is not blank is in some slice.
    pub fn split(self, text: &str, size: usize, overlap: usize) -> Vec<Slice> {
        match self {
            Self::Plain | Self::Rows => recursive::split(text, size, overlap),
            Self::Markdown => markdown::split(text, size, overlap),
            Self::Code => code::split(text, size, overlap),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Structure; 4] = [
        Structure::Plain,
        Structure::Markdown,
        Structure::Code,
        Structure::Rows,
    ];

    /// What must hold of every cut of every text.
    pub(crate) fn check(text: &str, size: usize, overlap: usize) {
        for structure in ALL {
            let slices = structure.split(text, size, overlap);
            let (mut end, mut start) = (0, 0);
            for slice in &slices {
                let chunk = &text[slice.bytes.clone()];
                assert_eq!(slice.length, chunk.chars().count());
                assert_eq!(slice.offset, text[..slice.bytes.start].chars().count());
                // What is kept, a blank line, and a piece that is shorter than the size.
                let most = overlap + "\n\n".len() + size - 1;
                assert!(slice.length <= most, "{structure:?}: {chunk:?}");
                assert!(!chunk.trim().is_empty(), "{structure:?}: a blank chunk");
                assert!(slice.bytes.start >= start, "{structure:?}: out of order");
                if slice.bytes.start > end {
                    let lost = &text[end..slice.bytes.start];
                    assert!(lost.trim().is_empty(), "{structure:?} loses {lost:?}");
                }
                (start, end) = (slice.bytes.start, end.max(slice.bytes.end));
            }
            let lost = &text[end..];
            assert!(lost.trim().is_empty(), "{structure:?} loses {lost:?}");
        }
    }

    #[test]
    fn a_kept_tail_and_a_blank_line_come_on_top() {
        let parts = [
            "```\n",
            "fn x() {\n    y\n}\n\n",
            "> [a](b) *c* <d>\r\n",
            "\n\n",
            " ééa漢aé 漢é漢 aaa漢aaééa ",
            "fn x() {\n    y\n}\n\n",
        ];
        check(&parts.concat(), 40, 39);
    }

    /// The splitter begins a chunk before the one that it cut last.
    #[test]
    fn a_kept_tail_that_begins_earlier_does_not_go_back() {
        let parts = [
            "```\n```\n| a | b |\n|---|---|\n| a | b |\n|---|---|\n",
            "fn x() {\n    y\n}\n\n éa aééé a漢é漢éé é 漢a",
            "| a | b |\n|---|---|\n",
        ];
        check(&parts.concat(), 31, 28);
    }

    #[test]
    fn kinds_have_structures() {
        assert_eq!(
            Structure::of("text/markdown; charset=utf-8"),
            Structure::Markdown
        );
        assert_eq!(Structure::of("text/x-python"), Structure::Code);
        assert_eq!(Structure::of("text/csv"), Structure::Rows);
        assert_eq!(Structure::of("application/json"), Structure::Plain);
        assert_eq!(Structure::of(""), Structure::Plain);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn nothing_is_lost_and_sizes_hold(
            parts in prop::collection::vec(prop_oneof![
                "[a-zé漢 ]{0,30}",
                Just("\n".to_owned()),
                Just("\n\n".to_owned()),
                Just("# head\n".to_owned()),
                Just("```\n".to_owned()),
                Just("| a | b |\n|---|---|\n".to_owned()),
                Just("| c | d |\n".to_owned()),
                Just("- item\n  - inner\n".to_owned()),
                Just("fn x() {\n    y\n}\n\n".to_owned()),
                Just("> [a](b) *c* <d>\r\n".to_owned()),
                Just("> term\n> : what it is\n\n".to_owned()),
                Just("term\n:   one\n    :   two\n".to_owned()),
                Just("[^a]: note\n\n    more[^a]\n".to_owned()),
                Just("- [x] $a$ {#b}\n\t\t\n".to_owned()),
            ], 0..60),
            size in 1usize..200,
            overlap in 0usize..60,
        ) {
            check(&parts.concat(), size, overlap.min(size - 1));
        }
    }
}
