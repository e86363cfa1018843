//! What a flow does with chunks, told in parts: a chunk of which nothing has changed is left alone by the processors of which
//! nothing has changed either.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tg_schemas::determinants::{self, PROMPTS, prompt_rows};
use tg_schemas::flow_record::ProcessorRow;
use tg_schemas::processors::{Role, processor, shared};
use tg_storage::blob::BlobId;

use super::readers::Reader;

/// Parts of what a processor does: name, and what it says, for models their names and else a hash.
pub(crate) type Parts = BTreeMap<String, String>;

/// Rows of one config type.
pub(crate) type Rows = BTreeMap<String, Arc<str>>;

/// What processors do, and each part of it that changed.
pub(crate) type Changes = BTreeMap<String, Vec<String>>;

/// Bytes of a hash that are told.
const SHOWN: usize = 8;
/// What stands for a model of which nobody says which it is, and for what nobody noted.
const UNKNOWN: &str = "unknown";
/// Stands for a processor that was not there before, or is there no more.
const NEW: &str = "new";
const GONE: &str = "gone";

/// What a flow does with documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Fingerprints {
    /// Processors that cut documents.
    cutters: BTreeMap<String, Parts>,
    /// Processors that read chunks.
    readers: BTreeMap<String, Parts>,
}

impl Fingerprints {
    /// Reads what is stored; what cannot be read is nothing that is known.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_slice(text.as_bytes()).ok()
    }

    /// As it is stored.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Fingerprints of the processors that read chunks. With `salt` they are others than without, where the same
    /// processors make something else of a chunk.
    pub(crate) fn of_readers(&self, salt: i64) -> BTreeMap<String, String> {
        let fingerprint = |(id, parts): (&String, &Parts)| {
            let hash = hash(&serde_json::to_string(parts).unwrap_or_default());
            let salted = match salt {
                0 => hash,
                salt => format!("{hash}-{salt}"),
            };
            (id.clone(), salted)
        };
        self.readers.iter().map(fingerprint).collect()
    }

    /// Processors that do something else with chunks than before.
    pub(crate) fn changed_readers(&self, before: &Self) -> Changes {
        changes(&before.readers, &self.readers)
    }

    /// All processors, where nobody knows what they did before.
    pub(crate) fn unknown(&self) -> Changes {
        let all = self.cutters.keys().chain(self.readers.keys());
        all.map(|id| (id.clone(), vec![UNKNOWN.to_owned()]))
            .collect()
    }

    /// All processors that do something else than before.
    pub(crate) fn changed(&self, before: &Self) -> Changes {
        let mut all = changes(&before.cutters, &self.cutters);
        all.extend(self.changed_readers(before));
        all
    }
}

fn changes(before: &BTreeMap<String, Parts>, now: &BTreeMap<String, Parts>) -> Changes {
    let mut changes = Changes::new();
    for (id, parts) in now {
        let Some(known) = before.get(id) else {
            changes.insert(id.clone(), vec![NEW.to_owned()]);
            continue;
        };
        let names: BTreeSet<&String> = parts.keys().chain(known.keys()).collect();
        let other = names
            .into_iter()
            .filter(|name| parts.get(*name) != known.get(*name));
        let other: Vec<String> = other.cloned().collect();
        if !other.is_empty() {
            changes.insert(id.clone(), other);
        }
    }
    for id in before.keys().filter(|id| !now.contains_key(*id)) {
        changes.insert(id.clone(), vec![GONE.to_owned()]);
    }
    changes
}

/// Whom to ask which model is behind a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ModelOf {
    /// A text completion.
    Completion(String),
    /// An embeddings service.
    Embeddings(String),
}

/// What the models behind topics are called.
pub(crate) type Models = BTreeMap<ModelOf, String>;

/// All that decides what a flow does with documents, but for the models.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// Rows of the flow's processors.
    pub(crate) rows: BTreeMap<String, ProcessorRow>,
    /// Who reads its topics.
    pub(crate) readers: Vec<Reader>,
    /// Rows of the workspace by config type.
    pub(crate) config: BTreeMap<&'static str, Arc<Rows>>,
}

/// Config types that decide what is made of chunks.
pub(crate) fn kinds() -> BTreeSet<&'static str> {
    let kinds = determinants::DETERMINANTS.iter();
    kinds
        .flat_map(|one| one.kinds.iter().copied())
        .chain([PROMPTS])
        .collect()
}

impl Sources {
    /// Whose models have to be known.
    pub(crate) fn models(&self) -> BTreeSet<ModelOf> {
        let read = self.ids("Chunk");
        read.iter().flat_map(|id| self.models_of(id)).collect()
    }

    /// What the flow does.
    pub(crate) fn fingerprints(&self, models: &Models) -> Fingerprints {
        let cuts = self.readers.iter().filter(|reader| reader.cuts());
        let cutters: BTreeSet<&str> = cuts.map(Reader::processor).collect();
        let cutters = cutters.into_iter().map(|id| (id.to_owned(), self.own(id)));
        let read = self.ids("Chunk").into_iter();
        let readers = read.map(|id| (id.to_owned(), self.parts(id, models)));
        Fingerprints {
            cutters: cutters.collect(),
            readers: readers.collect(),
        }
    }

    /// Processors that read a message.
    fn ids(&self, message: &str) -> BTreeSet<&str> {
        let read = self.readers.iter().filter(|one| one.message() == message);
        read.map(Reader::processor).collect()
    }

    fn parts(&self, id: &str, models: &Models) -> Parts {
        let mut parts = self.own(id);
        if let Some(by) = determinants::of(id) {
            let prompts = self.config.get(PROMPTS);
            let row = |key: String| prompts.and_then(|rows| rows.get(&key)).cloned();
            let texts = prompt_rows(by.prompts).map(|key| row(key).unwrap_or_default());
            parts.insert("prompt".to_owned(), hashed(texts));
            for kind in by.kinds {
                let rows = self
                    .config
                    .get(kind)
                    .into_iter()
                    .flat_map(|rows| rows.iter());
                let texts = rows.flat_map(|(key, value)| [key.as_str(), value.as_ref()]);
                parts.insert((*kind).to_owned(), hashed(texts));
            }
        }
        for of in self.models_of(id) {
            let known = models.get(&of).filter(|name| !name.is_empty());
            let name = known.map_or(UNKNOWN, String::as_str);
            let part = match of {
                ModelOf::Completion(_) => "model",
                ModelOf::Embeddings(_) => "embeddings",
            };
            let told = parts.entry(part.to_owned()).or_default();
            if !told.split(", ").any(|other| other == name) {
                *told = match told.as_str() {
                    "" => name.to_owned(),
                    told => format!("{told}, {name}"),
                };
            }
        }
        let behind = self.behind(id);
        if !behind.is_empty() {
            let texts = behind.iter().map(|reader| {
                let parameters = self.parameters(reader.processor());
                format!("{} {parameters}", reader.subscription)
            });
            parts.insert("stores".to_owned(), hashed(texts));
        }
        parts
    }

    /// What its own row says.
    fn own(&self, id: &str) -> Parts {
        let parameters = self.parameters(id);
        match parameters.as_str() {
            "" => Parts::new(),
            text => Parts::from([("parameters".to_owned(), hash(text))]),
        }
    }

    fn parameters(&self, id: &str) -> String {
        let row = self.rows.get(id).filter(|row| !row.parameters.is_empty());
        row.map_or_else(String::new, |row| format!("{:?}", row.parameters))
    }

    /// Whose models have a part in what a processor makes, or in what others make of that.
    fn models_of(&self, id: &str) -> BTreeSet<ModelOf> {
        let asked = |id: &str, name: &str| self.rows.get(id)?.topics.get(name).cloned();
        let behind = self.behind(id);
        let embed = behind.iter().map(Reader::processor).chain([id]);
        let embed = embed.filter_map(|id| asked(id, shared::EMBEDDINGS.name));
        let mut models: BTreeSet<ModelOf> = embed.map(ModelOf::Embeddings).collect();
        let renderer = determinants::of(id).map(|by| by.renderer);
        let completion = renderer.and_then(|id| asked(id, shared::TEXT_COMPLETION.name));
        models.extend(completion.map(ModelOf::Completion));
        models
    }

    /// Who reads what a processor writes, and what those write.
    fn behind(&self, id: &str) -> BTreeSet<Reader> {
        let mut found = BTreeSet::new();
        let mut open = vec![id.to_owned()];
        while let Some(id) = open.pop() {
            let topics = self.rows.get(&id).into_iter().flat_map(|row| &row.topics);
            let written = topics.filter(|(spec, _)| {
                let known = processor(&id).and_then(|known| known.spec(spec));
                known.is_some_and(|spec| spec.role == Role::Writes)
            });
            for (_, topic) in written {
                for reader in self.readers.iter().filter(|one| one.topic == *topic) {
                    if found.insert(reader.clone()) {
                        open.push(reader.processor().to_owned());
                    }
                }
            }
        }
        found
    }
}

fn hash(text: &str) -> String {
    hex::encode(&BlobId::of(text.as_bytes()).bytes()[..SHOWN])
}

/// Texts with their lengths, so that different lists never read alike.
fn hashed<T: AsRef<str>>(texts: impl Iterator<Item = T>) -> String {
    let mut all = String::new();
    for text in texts {
        let text = text.as_ref();
        all += &format!("{}\n{text}\n", text.len());
    }
    hash(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(topics: &[(&str, &str)], parameters: &[(&str, &str)]) -> ProcessorRow {
        let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        ProcessorRow {
            topics: own(topics).into_iter().collect(),
            parameters: own(parameters)
                .into_iter()
                .map(|(key, value)| (key, value.into()))
                .collect(),
            ..ProcessorRow::default()
        }
    }

    fn reader(processor: &str, topic: &str) -> Reader {
        Reader {
            topic: topic.to_owned(),
            subscription: format!("{processor}--w--f--input"),
        }
    }

    fn sources() -> Sources {
        let extractor = [
            ("triples", "t"),
            ("entity-contexts", "c"),
            ("prompt-request", "p"),
        ];
        let rows = [
            (
                "chunker",
                row(&[("output", "chunks")], &[("chunk-size", "5")]),
            ),
            ("kg-extract-definitions", row(&extractor, &[])),
            ("kg-extract-ontology", row(&extractor, &[])),
            ("kw-index", row(&[], &[])),
            ("prompt", row(&[("text-completion-request", "llm")], &[])),
            (
                "graph-embeddings",
                row(&[("output", "g"), ("embeddings-request", "e")], &[]),
            ),
        ];
        let prompts = Rows::from([
            (
                "template.extract-definitions".to_owned(),
                Arc::from("define"),
            ),
            (
                "template.extract-with-ontologies".to_owned(),
                Arc::from("fit"),
            ),
        ]);
        let ontologies = Rows::from([("o".to_owned(), Arc::from("classes"))]);
        Sources {
            rows: rows
                .into_iter()
                .map(|(id, row)| (id.to_owned(), row))
                .collect(),
            readers: vec![
                reader("chunker", "text"),
                reader("kg-extract-definitions", "chunks"),
                reader("kg-extract-ontology", "chunks"),
                reader("kw-index", "chunks"),
                reader("triples-write", "t"),
                reader("graph-embeddings", "c"),
                reader("graph-embeddings-write", "g"),
            ],
            config: [
                (PROMPTS, Arc::new(prompts)),
                ("ontology", Arc::new(ontologies)),
            ]
            .into(),
        }
    }

    fn models(completion: &str, embeddings: &str) -> Models {
        let completion = (ModelOf::Completion("llm".to_owned()), completion.to_owned());
        let embeddings = (ModelOf::Embeddings("e".to_owned()), embeddings.to_owned());
        Models::from([completion, embeddings])
    }

    fn told(changes: &Changes) -> Vec<String> {
        let told = changes
            .iter()
            .map(|(id, parts)| format!("{id}: {}", parts.join(" ")));
        told.collect()
    }

    #[test]
    fn each_change_is_told_for_those_whom_it_concerns() {
        let before = sources().fingerprints(&models("m", "v"));
        let changed = |change: &dyn Fn(&mut Sources), models: &Models| {
            let mut now = sources();
            change(&mut now);
            told(&now.fingerprints(models).changed(&before))
        };
        let same = models("m", "v");
        assert!(changed(&|_| {}, &same).is_empty());
        let set = |sources: &mut Sources, kind: &'static str, key: &str| {
            let mut rows = Rows::clone(&sources.config[kind]);
            rows.insert(key.to_owned(), Arc::from("other"));
            sources.config.insert(kind, Arc::new(rows));
        };
        let prompt = |s: &mut Sources| set(s, PROMPTS, "template.extract-definitions");
        assert_eq!(changed(&prompt, &same), ["kg-extract-definitions: prompt"]);
        let system = |s: &mut Sources| set(s, PROMPTS, "system");
        assert_eq!(changed(&system, &same).len(), 2);
        let other = |s: &mut Sources| set(s, PROMPTS, "template.other");
        assert!(changed(&other, &same).is_empty());
        let ontology = |s: &mut Sources| set(s, "ontology", "p");
        assert_eq!(changed(&ontology, &same), ["kg-extract-ontology: ontology"]);
        let model = changed(&|_| {}, &models("n", "v"));
        assert_eq!(
            model,
            [
                "kg-extract-definitions: model",
                "kg-extract-ontology: model"
            ]
        );
        let vectors = changed(&|_| {}, &models("m", "w"));
        assert_eq!(vectors[0], "kg-extract-definitions: embeddings");
        assert_eq!(vectors.len(), 2, "the index of words has no vectors");
        let chunker = |s: &mut Sources| {
            s.rows
                .insert("chunker".to_owned(), row(&[], &[("chunk-size", "6")]));
        };
        assert_eq!(changed(&chunker, &same), ["chunker: parameters"]);
        let store = |s: &mut Sources| s.readers.push(reader("kg-store", "t"));
        assert_eq!(changed(&store, &same)[0], "kg-extract-definitions: stores");
        let fewer = |s: &mut Sources| s.readers.retain(|one| one.processor() != "kw-index");
        assert_eq!(changed(&fewer, &same), ["kw-index: gone"]);
    }

    #[test]
    fn fingerprints_follow_from_what_is_done_and_are_read_as_they_are_stored() {
        let one = sources().fingerprints(&models("m", "v"));
        let other = sources().fingerprints(&models("n", "v"));
        assert_eq!(Fingerprints::read(&one.text()).as_ref(), Some(&one));
        let of = |of: &Fingerprints, salt| of.of_readers(salt)["kg-extract-definitions"].clone();
        assert_ne!(of(&one, 0), of(&other, 0));
        assert_ne!(of(&one, 0), of(&one, 7));
        assert_eq!(
            one.of_readers(0)["kw-index"],
            other.of_readers(0)["kw-index"]
        );
        let asked = sources().models();
        assert_eq!(asked.len(), 2);
        assert_eq!(Fingerprints::read(""), None);
    }
}
