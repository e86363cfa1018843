//! What is known of a document, as triples in the vocabulary of schema.org. Pure.

use serde_json::Value;
use tg_schemas::vocabulary::{made, rdf, rdfs, schema};
use tg_schemas::{Term, Triple};

use sha2::{Digest, Sha256};

/// What the user said of a document.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Known {
    /// Title of the document
    #[arg(long)]
    pub(super) name: Option<String>,
    /// What the document is about
    #[arg(long)]
    pub(super) description: Option<String>,
    /// Copyright notice
    #[arg(long, value_name = "TEXT")]
    copyright_notice: Option<String>,
    /// Who holds the copyright
    #[arg(long, value_name = "NAME")]
    copyright_holder: Option<String>,
    /// Year of the copyright
    #[arg(long, value_name = "YEAR")]
    copyright_year: Option<String>,
    /// Licence
    #[arg(long)]
    license: Option<String>,
    /// Who published the document
    #[arg(long, value_name = "NAME")]
    publication_organization: Option<String>,
    /// How it was published
    #[arg(long, value_name = "TEXT", requires = "publication_organization")]
    publication_description: Option<String>,
    /// When it was published
    #[arg(long, value_name = "DATE", requires = "publication_organization")]
    publication_date: Option<String>,
    /// Where the document is on the web
    #[arg(long, value_name = "URL")]
    pub(super) document_url: Option<String>,
    /// Keywords
    #[arg(long, num_args = 1..)]
    keyword: Vec<String>,
}

impl Known {
    /// Title, subject and keywords.
    pub(super) fn of(name: &str, description: &str, keywords: &[&str]) -> Self {
        Self {
            name: Some(name.to_owned()),
            description: Some(description.to_owned()),
            keyword: keywords.iter().map(|word| (*word).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// The triples about a document, in the API form.
    pub(super) fn triples(&self, id: &str) -> Vec<Value> {
        let mut about = About::new(id);
        about.link(rdf::TYPE, &schema_term("DigitalDocument"));
        let texts = [
            (rdfs::LABEL.to_owned(), &self.name),
            (schema_term("name"), &self.name),
            (schema_term("description"), &self.description),
            (schema_term("copyrightNotice"), &self.copyright_notice),
            (schema_term("copyrightHolder"), &self.copyright_holder),
            (schema_term("copyrightYear"), &self.copyright_year),
            (schema_term("license"), &self.license),
        ];
        for (predicate, text) in texts {
            about.text(&predicate, text.as_deref());
        }
        for keyword in &self.keyword {
            about.text(&schema_term("keywords"), Some(keyword));
        }
        if let Some(url) = &self.document_url {
            about.link(&schema_term("url"), url);
        }
        let mut triples = about.triples;
        if let Some(organization) = &self.publication_organization {
            triples.extend(self.publication(id, organization));
        }
        triples.iter().map(Triple::to_api).collect()
    }

    fn publication(&self, id: &str, organization: &str) -> Vec<Triple> {
        let event = iri("pubev", format!("{id} {organization}").as_bytes());
        let publisher = iri("org", organization.as_bytes());
        let mut document = About::new(id);
        document.link(&schema_term("publication"), &event);
        let mut publication = About::new(&event);
        publication.link(rdf::TYPE, &schema_term("PublicationEvent"));
        publication.text(
            &schema_term("description"),
            self.publication_description.as_deref(),
        );
        publication.text(&schema_term("startDate"), self.publication_date.as_deref());
        publication.text(&schema_term("endDate"), self.publication_date.as_deref());
        publication.link(&schema_term("publishedBy"), &publisher);
        let mut name = About::new(&publisher);
        name.link(rdf::TYPE, &schema_term("Organization"));
        name.text(rdfs::LABEL, Some(organization));
        name.text(&schema_term("name"), Some(organization));
        [document.triples, publication.triples, name.triples].concat()
    }
}

/// Triples about one thing.
struct About {
    subject: Term,
    triples: Vec<Triple>,
}

impl About {
    fn new(subject: &str) -> Self {
        Self {
            subject: Term::iri(subject),
            triples: Vec::new(),
        }
    }

    fn link(&mut self, predicate: &str, object: &str) {
        self.push(predicate, Term::iri(object));
    }

    fn text(&mut self, predicate: &str, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.push(predicate, Term::literal(text));
        }
    }

    fn push(&mut self, predicate: &str, object: Term) {
        let triple = Triple::new(self.subject.clone(), Term::iri(predicate), object);
        self.triples.push(triple);
    }
}

fn schema_term(name: &str) -> String {
    format!("{}{name}", schema::NAMESPACE)
}

/// An IRI that is the same for the same content.
pub(super) fn iri(kind: &str, content: &[u8]) -> String {
    iri_of(kind, &hex::encode(Sha256::digest(content)))
}

/// The same, by the SHA-256 of the content in hexadecimal digits: every other one of them, as a UUID.
pub(super) fn iri_of(kind: &str, hash: &str) -> String {
    let digits: String = hash.chars().step_by(2).collect();
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    format!("{}{kind}/{}", made::LIBRARY, parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_content_has_the_same_id() {
        assert_eq!(
            iri("doc", b""),
            "https://trustgraph.ai/doc/ebc49f11-9ffc-96b2-2a4e-6994a99175b5"
        );
        assert_ne!(iri("doc", b"a"), iri("doc", b"b"));
    }

    #[test]
    fn only_what_is_known_is_said() {
        let known = Known {
            name: Some("A title".into()),
            keyword: vec!["x".into(), "y".into()],
            publication_organization: Some("Press".into()),
            ..Known::default()
        };
        let triples = known.triples("urn:doc");
        let says = |predicate: &str, object: Value| {
            triples
                .iter()
                .any(|triple| triple["p"]["i"] == predicate && triple["o"] == object)
        };
        assert!(says(rdfs::LABEL, json!({"t": "l", "v": "A title"})));
        assert!(says(
            "https://schema.org/keywords",
            json!({"t": "l", "v": "y"})
        ));
        assert!(says(
            "https://schema.org/name",
            json!({"t": "l", "v": "Press"})
        ));
        assert!(
            !triples
                .iter()
                .any(|triple| triple["p"]["i"] == "https://schema.org/license")
        );
    }
}
