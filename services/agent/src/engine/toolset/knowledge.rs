//! Tools that look into the collections of a run: their names, and what they take.

use crate::engine::arguments::{Argument, Kind};

/// What such a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knowledge {
    /// Lists the collections.
    ListKbs,
    /// Lists documents.
    ListDocuments,
    /// Counts documents.
    CountDocuments,
    /// Counts the documents of a collection, and shows a few titles.
    SummarizeKb,
    /// Finds passages.
    SearchKb,
    /// Shows the chunks of a document.
    ListChunks,
    /// Shows what is known of a document.
    GetDocument,
}

/// Each, by its type.
const ALL: [(&str, Knowledge); 7] = [
    ("list-kbs", Knowledge::ListKbs),
    ("list-documents", Knowledge::ListDocuments),
    ("count-documents", Knowledge::CountDocuments),
    ("summarize-kb", Knowledge::SummarizeKb),
    ("search-kb", Knowledge::SearchKb),
    ("list-chunks", Knowledge::ListChunks),
    ("get-document", Knowledge::GetDocument),
];

/// The argument that names a collection.
pub const KB: &str = "knowledgeBaseId";
/// The argument that names a document.
pub const DOCUMENT: &str = "documentId";

impl Knowledge {
    /// By the type of its row.
    pub fn named(kind: &str) -> Option<Self> {
        let found = ALL.iter().find(|(name, _)| *name == kind);
        found.map(|(_, which)| *which)
    }

    /// Its type.
    pub fn label(self) -> &'static str {
        let found = ALL.iter().find(|(_, which)| *which == self);
        found.map_or("knowledge", |(name, _)| *name)
    }

    /// What it takes.
    pub fn arguments(self) -> Vec<Argument> {
        let one = |name: &str, kind, description: &str, required| Argument {
            name: name.to_owned(),
            kind,
            description: description.to_owned(),
            required,
        };
        let base = |required| {
            let text = "Id of the knowledge base, as list_kbs names it";
            one(KB, Kind::String, text, required)
        };
        let document = || {
            let text = "Id of the document, or of a passage of it";
            one(DOCUMENT, Kind::String, text, true)
        };
        match self {
            Self::ListKbs => Vec::new(),
            Self::ListDocuments | Self::CountDocuments => vec![base(false)],
            Self::SummarizeKb => vec![base(true)],
            Self::SearchKb => vec![
                one("query", Kind::String, "What to look for", true),
                base(false),
                one(
                    "limit",
                    Kind::Integer,
                    "Most passages to return, at most 8",
                    false,
                ),
            ],
            Self::ListChunks | Self::GetDocument => vec![document()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_type() {
        for (name, which) in ALL {
            assert_eq!(Knowledge::named(name), Some(which));
            assert_eq!(which.label(), name);
        }
        assert_eq!(Knowledge::named("delete-kb"), None);
    }
}
