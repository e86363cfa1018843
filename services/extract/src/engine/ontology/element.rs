//! What an ontology declares: classes and properties, and how they are called.

/// What an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A class.
    Class,
    /// A property that leads to a thing.
    Relation,
    /// A property that leads to a value.
    Attribute,
}

/// A text with its language, which may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Label {
    /// The text.
    pub text: String,
    /// Language tag.
    pub language: String,
}

/// A class or property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// What it is.
    pub kind: Kind,
    /// Its IRI.
    pub iri: String,
    /// Its name in prompts and replies.
    pub name: String,
    /// Its labels, preferred first.
    pub labels: Vec<Label>,
    /// What is said of it.
    pub comments: Vec<Label>,
    /// Superclasses, or properties it is a kind of.
    pub parents: Vec<String>,
    /// Classes that are the same.
    pub equivalent: Vec<String>,
    /// What it can be said of; anything if empty, any of them otherwise.
    pub domains: Vec<String>,
    /// What it can lead to; anything if empty, any of them otherwise.
    pub ranges: Vec<String>,
    /// The property that says the same the other way round.
    pub inverse: Option<String>,
    /// Number of its ontology.
    pub ontology: usize,
}

impl Element {
    /// An element of which nothing but this is known.
    pub(super) fn new(kind: Kind, iri: String, name: String) -> Self {
        Self {
            kind,
            iri,
            name,
            labels: Vec::new(),
            comments: Vec::new(),
            parents: Vec::new(),
            equivalent: Vec::new(),
            domains: Vec::new(),
            ranges: Vec::new(),
            inverse: None,
            ontology: 0,
        }
    }

    /// What people call it.
    pub fn label(&self) -> &str {
        self.labels.first().map_or(&self.name, |label| &label.text)
    }
}

/// One ontology as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ontology {
    /// Its IRI.
    pub iri: String,
    /// Its elements.
    pub elements: Vec<Element>,
}

/// The end of an IRI.
pub(super) fn local(iri: &str) -> &str {
    let iri = iri.trim_end_matches(['/', '#']);
    iri.rsplit(['/', '#', ':']).next().unwrap_or(iri)
}
