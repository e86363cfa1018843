//! What a client accepts (RFC 9110, 12.5.1), and which of the syntaxes at hand is best for it.

use oxrdfio::{JsonLdProfileSet, RdfFormat};
use sparesults::QueryResultsFormat;

/// A syntax under the name by which a client may ask for it. Of equal ones the first is taken.
pub(crate) type Offer<F> = (&'static str, F);

/// Rows of SELECT. The standards of CSV and TSV know no ASK: see [`BOOLEANS`].
pub(crate) const RESULTS: &[Offer<QueryResultsFormat>] = &[
    ("application/sparql-results+json", QueryResultsFormat::Json),
    ("application/sparql-results+xml", QueryResultsFormat::Xml),
    ("application/json", QueryResultsFormat::Json),
    ("application/xml", QueryResultsFormat::Xml),
    ("text/csv", QueryResultsFormat::Csv),
    ("text/tab-separated-values", QueryResultsFormat::Tsv),
];

/// The answer of ASK: rows without the last two.
pub(crate) const BOOLEANS: &[Offer<QueryResultsFormat>] = RESULTS.split_at(RESULTS.len() - 2).0;

/// One graph.
pub(crate) const GRAPHS: &[Offer<RdfFormat>] = &[
    ("text/turtle", RdfFormat::Turtle),
    ("application/n-triples", RdfFormat::NTriples),
    ("application/rdf+xml", RdfFormat::RdfXml),
    (
        "application/ld+json",
        RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
    ),
    // Clients that ask for rows in JSON ask for a graph by the same name.
    (
        "application/json",
        RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
    ),
];

/// Whether a graph in this syntax is XML, which cannot say all of RDF.
pub(crate) fn graph_is_xml(format: RdfFormat) -> bool {
    format == RdfFormat::RdfXml
}

/// Whether rows in this syntax are XML.
pub(crate) fn rows_are_xml(format: QueryResultsFormat) -> bool {
    format == QueryResultsFormat::Xml
}

/// What a client accepts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Accept(Vec<Range>);

#[derive(Debug, Clone, PartialEq)]
struct Range {
    kind: String,
    /// In thousandths.
    weight: u16,
}

impl Accept {
    /// Reads the values of the header. What cannot be read accepts nothing; no value at all accepts everything.
    pub(crate) fn read<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let ranges = values.into_iter().flat_map(|value| value.split(','));
        let ranges = ranges.filter(|range| !range.trim().is_empty());
        let unread = || Range {
            kind: String::new(),
            weight: 0,
        };
        Self(
            ranges
                .map(|range| Range::read(range).unwrap_or_else(unread))
                .collect(),
        )
    }

    /// The best of what is offered.
    pub(crate) fn best<F: Copy>(&self, offers: &[Offer<F>]) -> Option<Offer<F>> {
        let weighed = offers.iter().map(|offer| (self.weight(offer.0), *offer));
        let wanted = weighed.filter(|(weight, _)| *weight > 0);
        // Of equal weights the first.
        let best = wanted.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, offer)| offer)
    }

    /// How much a media type is wanted; the most exact range decides.
    fn weight(&self, kind: &str) -> u16 {
        if self.0.is_empty() {
            return 1000;
        }
        let main = kind.split_once('/').map_or("", |(main, _)| main);
        let exactness = |range: &Range| match range.kind.as_str() {
            exact if exact == kind => 3,
            "*/*" => 1,
            other if other.strip_suffix("/*") == Some(main) => 2,
            _ => 0,
        };
        let matching = self.0.iter().filter(|range| exactness(range) > 0);
        let best = matching.max_by_key(|range| (exactness(range), range.weight));
        best.map_or(0, |range| range.weight)
    }
}

impl Range {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next()?.to_ascii_lowercase();
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        });
        let weight: f32 = weight.map_or(Ok(1.0), str::parse).ok()?;
        if !(0.0..=1.0).contains(&weight) {
            return None;
        }
        Some(Self {
            kind,
            weight: (weight * 1000.0).round() as u16,
        })
    }
}

/// A media type without its parameters, in lower case.
pub(crate) fn essence(content_type: &str) -> String {
    let kind = content_type.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(accept: &[&str]) -> Option<&'static str> {
        let best = Accept::read(accept.iter().copied()).best(RESULTS);
        best.map(|(kind, _)| kind)
    }

    fn graph(accept: &str) -> Option<&'static str> {
        Accept::read([accept]).best(GRAPHS).map(|(kind, _)| kind)
    }

    #[test]
    fn who_says_nothing_gets_the_first() {
        for accept in [&[][..], &[""], &["*/*"], &["application/*"]] {
            assert_eq!(rows(accept), Some("application/sparql-results+json"));
        }
        assert_eq!(graph("*/*"), Some("text/turtle"));
        assert_eq!(graph("application/*"), Some("application/n-triples"));
        assert_eq!(graph("application/json"), Some("application/json"));
        assert_eq!(rows(&["text/*"]), Some("text/csv"));
    }

    #[test]
    fn the_weight_decides_and_then_the_order_of_the_offers() {
        assert_eq!(
            rows(&["text/csv;q=0.5, application/sparql-results+xml ; Q=0.9"]),
            Some("application/sparql-results+xml")
        );
        assert_eq!(
            rows(&["text/csv", "application/json"]),
            Some("application/json")
        );
        assert_eq!(
            rows(&["*/*;q=0.1, Text/Tab-Separated-Values;q=0.2"]),
            Some("text/tab-separated-values")
        );
        // What both rdflib and Jena ask for names both families at once.
        let both = "application/sparql-results+xml, application/rdf+xml";
        assert_eq!(rows(&[both]), Some("application/sparql-results+xml"));
        assert_eq!(graph(both), Some("application/rdf+xml"));
    }

    #[test]
    fn the_most_exact_range_decides() {
        assert_eq!(
            rows(&["application/sparql-results+json;q=0, application/*;q=0.4, */*;q=0.3"]),
            Some("application/sparql-results+xml")
        );
        assert_eq!(
            graph("text/turtle;q=0, application/n-triples;q=0, */*"),
            Some("application/rdf+xml")
        );
    }

    #[test]
    fn what_nobody_can_write_is_not_acceptable() {
        for accept in [
            "text/html",
            "application/sparql-results+json;q=0",
            "text/csv;q=2",
            "text/csv;q=x",
            "nonsense",
        ] {
            assert_eq!(rows(&[accept]), rows(&["text/html"]), "{accept}");
        }
        assert_eq!(rows(&["text/html"]), None);
        assert_eq!(graph("text/csv"), None);
        assert_eq!(Accept::read(["text/csv"]).best(BOOLEANS), None);
        assert!(Accept::read(["application/xml"]).best(BOOLEANS).is_some());
    }

    #[test]
    fn parameters_of_a_content_type_are_no_part_of_its_name() {
        assert_eq!(essence("Text/Turtle; charset=UTF-8"), "text/turtle");
        assert_eq!(essence(""), "");
    }
}
