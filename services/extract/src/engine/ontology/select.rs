//! Choosing what of the ontologies a text is about: by words, by meaning, and by what belongs together.

use std::collections::BTreeSet;

use super::element::{Element, Kind, local};
use super::model::Ontologies;

/// Most sentences of a chunk that are compared.
const SEGMENTS: usize = 64;
/// Longest of them, in characters.
const SEGMENT: usize = 600;
/// Most elements that a prompt shows.
const MOST: usize = 300;

/// Elements by meaning.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Model that made the vectors; empty if it did not say.
    pub model: String,
    /// One vector for each element, of length 1.
    vectors: Vec<Vec<f32>>,
}

impl Index {
    /// Text of every element, for the embeddings.
    pub fn texts(ontologies: &Ontologies) -> Vec<String> {
        let elements = ontologies.elements().iter();
        elements.map(|element| text(ontologies, element)).collect()
    }

    /// An index over the vectors of [`Index::texts`].
    pub fn new(model: String, vectors: Vec<Vec<f32>>) -> Self {
        Self {
            model,
            vectors: vectors.into_iter().map(unit).collect(),
        }
    }

    /// Elements that are alike to any of the sentences, the likest first: for each sentence at most `top_k`
    /// whose cosine reaches the threshold.
    pub fn near(&self, sentences: Vec<Vec<f32>>, top_k: usize, threshold: f32) -> Vec<usize> {
        let mut best = vec![f32::MIN; self.vectors.len()];
        for sentence in sentences.into_iter().map(unit) {
            let mut likes: Vec<(f32, usize)> = self
                .vectors
                .iter()
                .enumerate()
                .filter(|(_, vector)| vector.len() == sentence.len())
                .map(|(at, vector)| (dot(vector, &sentence), at))
                .filter(|(like, _)| *like >= threshold)
                .collect();
            likes.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            for (like, at) in likes.into_iter().take(top_k) {
                best[at] = best[at].max(like);
            }
        }
        let mut near: Vec<usize> = (0..best.len()).filter(|at| best[*at] > f32::MIN).collect();
        near.sort_by(|a, b| best[*b].total_cmp(&best[*a]).then(a.cmp(b)));
        near
    }
}

/// A text's sentences, for the embeddings.
pub fn segments(text: &str) -> Vec<String> {
    let mut segments = Vec::new();
    for line in text.lines() {
        let mut from = 0;
        let mut ends: Vec<usize> = line
            .char_indices()
            .filter(|(at, c)| {
                let rest = &line[at + c.len_utf8()..];
                matches!(c, '.' | '!' | '?' | ';') && rest.starts_with(char::is_whitespace)
            })
            .map(|(at, c)| at + c.len_utf8())
            .collect();
        ends.push(line.len());
        for end in ends {
            let segment = line[from..end].trim();
            if segment.chars().any(char::is_alphanumeric) {
                segments.push(segment.chars().take(SEGMENT).collect());
            }
            from = end;
        }
    }
    segments.truncate(SEGMENTS);
    segments
}

/// Elements whose name or label stands in the text.
pub fn named_in(ontologies: &Ontologies, text: &str) -> Vec<usize> {
    let known: BTreeSet<String> = words(text).into_iter().collect();
    let stands = |name: &str| {
        let words = words(name);
        !words.is_empty() && words.iter().all(|word| known.contains(word))
    };
    let named = |element: &Element| {
        let labels = element.labels.iter().map(|label| label.text.as_str());
        labels.chain([local(&element.iri)]).any(stands)
    };
    let elements = ontologies.elements().iter().enumerate();
    elements
        .filter(|(_, element)| named(element))
        .map(|(at, _)| at)
        .collect()
}

/// What belongs to the chosen elements: superclasses, the ends of properties, inverse properties, and the
/// properties of chosen classes with their other ends. The first chosen come first when it is too much.
pub fn close(ontologies: &Ontologies, chosen: &[usize]) -> BTreeSet<usize> {
    let elements = ontologies.elements();
    let mut closed = BTreeSet::new();
    let is_class = |at: &usize| elements[*at].kind == Kind::Class;
    for at in chosen {
        if closed.len() >= MOST {
            break;
        }
        if is_class(at) {
            closed.extend(ontologies.ancestors(*at));
        } else {
            property(ontologies, *at, &mut closed);
        }
    }
    let classes: BTreeSet<usize> = chosen
        .iter()
        .filter(|at| is_class(at))
        .flat_map(|at| ontologies.ancestors(*at))
        .collect();
    for (at, element) in elements.iter().enumerate() {
        if closed.len() >= MOST {
            break;
        }
        let ends = ontologies.classes(&element.domains);
        let other = ontologies.classes(&element.ranges);
        let touches = ends.iter().chain(&other).any(|end| classes.contains(end));
        if element.kind != Kind::Class && touches {
            property(ontologies, at, &mut closed);
        }
    }
    closed
}

fn property(ontologies: &Ontologies, at: usize, closed: &mut BTreeSet<usize>) {
    let element = &ontologies.elements()[at];
    closed.insert(at);
    let inverse = element
        .inverse
        .as_deref()
        .and_then(|iri| ontologies.at(iri));
    closed.extend(inverse.filter(|at| ontologies.elements()[*at].kind == Kind::Relation));
    for end in ontologies
        .classes(&element.domains)
        .into_iter()
        .chain(ontologies.classes(&element.ranges))
    {
        closed.extend(ontologies.ancestors(end));
    }
}

fn text(ontologies: &Ontologies, element: &Element) -> String {
    let mut parts = vec![words(local(&element.iri)).join(" ")];
    let texts = element.labels.iter().chain(&element.comments);
    parts.extend(texts.map(|label| label.text.clone()));
    let names = |iris: &[String]| {
        let names: Vec<&str> = iris
            .iter()
            .map(|iri| {
                ontologies
                    .at(iri)
                    .map_or(local(iri), |at| ontologies.elements()[at].label())
            })
            .collect();
        names.join(", ")
    };
    for (what, iris) in [
        ("a kind of", &element.parents),
        ("of", &element.domains),
        ("to", &element.ranges),
    ] {
        if !iris.is_empty() {
            parts.push(format!("{what} {}", names(iris)));
        }
    }
    parts.dedup();
    parts.join(". ")
}

/// Lower-case words; `camelCase` comes apart, and plural forms count as singular ones.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut lower = false;
    for c in text.chars().chain([' ']) {
        let breaks = !c.is_alphanumeric() || (c.is_uppercase() && lower);
        if breaks && !word.is_empty() {
            words.push(singular(&std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase() || c.is_numeric();
    }
    words
}

fn singular(word: &str) -> String {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem.to_owned(),
        _ => word.to_owned(),
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = dot(&vector, &vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
    vector
}
