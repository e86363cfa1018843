//! What an endpoint says of itself (SPARQL 1.1 Service Description).

use std::io;

use bytes::Bytes;
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, NamedNode, NamedNodeRef, NamedOrBlankNodeRef, TermRef, TripleRef};

use tg_schemas::vocabulary;

use super::media::{Accept, GRAPHS, RESULTS};
use super::writer::serializer;

fn sd(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{}{name}", vocabulary::sd::NAMESPACE))
}

/// The description of the service at an address, with its media type; `None` when its reader accepts no syntax of
/// graphs.
///
/// # Errors
/// When the syntax cannot say it.
pub(crate) fn describe(
    accept: &Accept,
    endpoint: &str,
) -> Option<io::Result<(&'static str, Bytes)>> {
    let (media, format) = accept.best(GRAPHS)?;
    let mut writer = serializer(format).for_writer(Vec::new());
    let service = BlankNode::new_unchecked("service");
    let (dataset, graph) = (
        BlankNode::new_unchecked("dataset"),
        BlankNode::new_unchecked("graph"),
    );
    let mut said: Vec<(&BlankNode, NamedNode, NamedNode)> = vec![
        (&service, rdf::TYPE.into_owned(), sd("Service")),
        (&service, sd("supportedLanguage"), sd("SPARQL11Query")),
    ];
    // A client may read an address that is none as it likes; no address is said then.
    if let Ok(endpoint) = NamedNode::new(endpoint) {
        said.push((&service, sd("endpoint"), endpoint));
    }
    let mut formats: Vec<&str> = RESULTS.iter().map(|offer| offer.1.iri()).collect();
    formats.extend(GRAPHS.iter().map(|offer| offer.1.iri()));
    formats.sort_unstable();
    formats.dedup();
    for format in formats {
        let format = NamedNodeRef::new_unchecked(format).into_owned();
        said.push((&service, sd("resultFormat"), format));
    }
    said.push((&dataset, rdf::TYPE.into_owned(), sd("Dataset")));
    said.push((&graph, rdf::TYPE.into_owned(), sd("Graph")));
    let written = said
        .iter()
        .map(|(s, p, o)| triple(s, p, o.as_ref().into()))
        .chain([
            triple(&service, &sd("defaultDataset"), dataset.as_ref().into()),
            triple(&dataset, &sd("defaultGraph"), graph.as_ref().into()),
        ])
        .try_for_each(|triple| writer.serialize_triple(triple));
    Some(written.and_then(|()| Ok((media, writer.finish()?.into()))))
}

fn triple<'a>(s: &'a BlankNode, p: &'a NamedNode, o: TermRef<'a>) -> TripleRef<'a> {
    TripleRef::new(NamedOrBlankNodeRef::from(s.as_ref()), p.as_ref(), o)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::vocabulary::sd::NAMESPACE as SD;

    #[test]
    fn it_says_where_it_is_and_what_it_speaks_in_each_syntax() {
        let at = "http://localhost:8888/api/v1/flow/default/sparql/default";
        for (kind, format) in GRAPHS {
            let described = describe(&Accept::read([*kind]), at).unwrap().unwrap();
            assert_eq!(described.0, *kind);
            let parser = oxrdfio::RdfParser::from_format(*format);
            let triples: Vec<String> = parser
                .for_slice(&described.1)
                .map(|quad| quad.unwrap().to_string())
                .collect();
            let has = |text: &str| triples.iter().any(|triple| triple.contains(text));
            assert!(has(&format!("{SD}endpoint> <{at}>")), "{kind}: {triples:?}");
            assert!(has("SPARQL11Query") && has("SPARQL_Results_CSV") && has("formats/Turtle"));
            assert!(!has("SPARQL11Update"));
        }
        assert!(describe(&Accept::read(["text/csv"]), at).is_none());
    }
}
