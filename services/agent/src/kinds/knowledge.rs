//! Tools that look into the collections of a run: which there are, their documents, and what stands in these. A run looks into
//! no other collection, whatever its model names.

use tg_clients::library::{Library, Passage};
use tg_schemas::msg::{ChunkMatch, DocumentMetadata};
use tg_schemas::{Error, ErrorCode};

use super::passages;
use super::tool_call::{Arguments, Call, Output, limit, text};
use crate::engine::toolset::{DOCUMENT, KB, Knowledge};

/// Collections and documents of a listing.
const LISTED: usize = 25;
/// Titles of a summary.
const TITLES: usize = 5;
/// Passages that a search returns, usually and at most.
const FOUND: (usize, usize) = (5, 8);
/// Characters of each.
const PREVIEW: usize = 400;
/// Chunks of a document that are shown, and characters of each.
const CHUNKS: usize = 50;
const CHUNK: usize = 1_500;
/// Questions to the library for the parts of one document.
const PARTS: usize = 100;
/// Documents that one question counts, and all questions.
const PAGE: usize = 1_000;
const COUNTED: usize = 10_000;

/// Uses one of them.
pub(super) async fn call(
    call: &Call<'_>,
    which: Knowledge,
    arguments: &Arguments,
) -> Result<Output, Error> {
    let bases = bases(call, text(arguments, KB))?;
    let library = Library::of_flow(call.cx);
    let named = text(arguments, DOCUMENT);
    let told = match which {
        Knowledge::ListKbs => listed(&bases),
        Knowledge::ListDocuments => documents(&library, &bases).await?,
        Knowledge::CountDocuments => counts(&library, &bases).await?,
        Knowledge::SummarizeKb => summary(&library, &bases).await?,
        Knowledge::SearchKb => {
            let most = limit(arguments, FOUND.0, FOUND.1);
            found(
                call,
                &library,
                (bases.as_slice(), most),
                text(arguments, "query"),
            )
            .await?
        }
        Knowledge::ListChunks => {
            let document = document(&library, &bases, named).await?;
            chunks(&library, &document.id).await?
        }
        Knowledge::GetDocument => described(&document(&library, &bases, named).await?),
    };
    Ok(told.into())
}

/// The collections of the run that a call looks into: the one that it names, else all.
fn bases<'a>(call: &Call<'a>, named: &str) -> Result<Vec<&'a str>, Error> {
    let all: Vec<&str> = match call.collections {
        [] => vec![call.collection],
        all => all.iter().map(String::as_str).collect(),
    };
    if named.is_empty() {
        return Ok(all);
    }
    let one = all.into_iter().find(|one| *one == named);
    let text =
        "knowledgeBaseId: there is no such knowledge base; list_kbs shows those that there are";
    one.map(|one| vec![one])
        .ok_or_else(|| Error::new(ErrorCode::NotFound, text))
}

/// As much of a text as is shown.
fn cut(text: &str, most: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

fn listed(bases: &[&str]) -> String {
    let line = |base: &&str| format!("* {base}");
    let mut shown: Vec<String> = bases.iter().take(LISTED).map(line).collect();
    if bases.len() > LISTED {
        shown.push(format!("and {} more", bases.len() - LISTED));
    }
    shown.join("\n")
}

/// A document in a listing.
fn titled(document: &DocumentMetadata) -> String {
    match document.title.trim() {
        "" => format!("* {}", document.id),
        title => format!("* {title} ({})", document.id),
    }
}

async fn documents(library: &Library, bases: &[&str]) -> Result<String, Error> {
    let (mut shown, mut more) = (Vec::new(), false);
    for base in bases {
        let room = LISTED - shown.len();
        // One more than there is room for says whether there are more.
        let (page, _) = library.documents(base, "", room + 1).await?;
        more |= page.len() > room;
        let line = |one: &DocumentMetadata| format!("{} in {base}", titled(one));
        shown.extend(page.iter().take(room).map(line));
        if more {
            break;
        }
    }
    if more {
        shown.push("and more".to_owned());
    }
    Ok(match shown.is_empty() {
        true => "There are no documents".to_owned(),
        false => shown.join("\n"),
    })
}

async fn counts(library: &Library, bases: &[&str]) -> Result<String, Error> {
    let mut told = Vec::new();
    for base in bases.iter().take(LISTED) {
        let count = count(library, base).await?;
        told.push(format!("{base}: {count}"));
    }
    if bases.len() > LISTED {
        told.push("Name one of the others to count its documents".to_owned());
    }
    Ok(told.join("\n"))
}

/// How many documents a collection has.
async fn count(library: &Library, base: &str) -> Result<String, Error> {
    let (mut count, mut after) = (0, String::new());
    loop {
        let (page, next) = library.documents(base, &after, PAGE).await?;
        count += page.len();
        if next.is_empty() || next == after {
            break;
        }
        if count >= COUNTED {
            return Ok(format!("at least {count} documents"));
        }
        after = next;
    }
    Ok(match count {
        1 => "1 document".to_owned(),
        count => format!("{count} documents"),
    })
}

async fn summary(library: &Library, bases: &[&str]) -> Result<String, Error> {
    let Some(base) = bases.first() else {
        return Ok(String::new());
    };
    let count = count(library, base).await?;
    let (page, _) = library.documents(base, "", TITLES).await?;
    let mut told = vec![format!("{base}: {count}")];
    told.extend(page.iter().take(TITLES).map(titled));
    Ok(told.join("\n"))
}

/// The passages of the collections that fit best. A collection that cannot be searched is left out, unless none can.
async fn found(
    call: &Call<'_>,
    library: &Library,
    (bases, most): (&[&str], usize),
    query: &str,
) -> Result<String, Error> {
    let texts = vec![query.to_owned()];
    let embedded = tg_clients::embeddings::embed(call.cx, texts, None).await?;
    let (mut all, mut fault): (Vec<(ChunkMatch, &str)>, _) = (Vec::new(), None);
    for base in bases {
        let mut own = embedded.clone();
        match passages::search(call, &mut own, (*base, most)).await {
            Ok(hits) => all.extend(hits.into_iter().map(|hit| (hit, *base))),
            Err(error) if error.code().is_over() => return Err(error),
            Err(error) => fault = Some(error),
        }
    }
    if let (true, Some(error)) = (all.is_empty(), fault) {
        return Err(error);
    }
    all.sort_by(|(one, _), (other, _)| other.score.total_cmp(&one.score));
    all.truncate(most);
    let ids: Vec<String> = all.iter().map(|(hit, _)| hit.chunk_id.clone()).collect();
    let texts = library.texts(&ids).await?;
    let hits = all.iter().zip(texts);
    let hits = hits.filter_map(|((hit, base), passage)| {
        let preview = cut(&passage?.text, PREVIEW);
        Some(format!("Passage {} in {base}:\n{preview}", hit.chunk_id))
    });
    let hits: Vec<String> = hits.collect();
    Ok(match hits.is_empty() {
        true => "No passages found".to_owned(),
        false => hits.join("\n\n"),
    })
}

/// The document of this id, or the one that a passage of this id stands in, if it is in one of the collections.
async fn document(
    library: &Library,
    bases: &[&str],
    named: &str,
) -> Result<DocumentMetadata, Error> {
    let missing = || Error::new(ErrorCode::NotFound, "documentId: there is no such document");
    let known = library.document_of(named).await.ok_or_else(missing)?;
    for base in bases {
        if library.is_in(&known.id, base).await? {
            return Ok(known);
        }
    }
    Err(missing())
}

async fn chunks(library: &Library, document: &str) -> Result<String, Error> {
    let ids = chunks_of(library, document).await?;
    let texts = library.texts(&ids).await?;
    let shown = ids.iter().zip(texts).filter_map(|(id, passage)| {
        let Passage { text, context } = passage?;
        let stands = match context.trim() {
            "" => String::new(),
            context => format!(" ({context})"),
        };
        Some(format!("Chunk {id}{stands}:\n{}", cut(&text, CHUNK)))
    });
    let shown: Vec<String> = shown.collect();
    Ok(match shown.is_empty() {
        true => "The document has no chunks".to_owned(),
        false => shown.join("\n\n"),
    })
}

/// The first chunks of a document, in their order: its own, and those of its pages and sections.
async fn chunks_of(library: &Library, document: &str) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    let mut open = vec![(document.to_owned(), false)];
    let mut asked = 0;
    while found.len() < CHUNKS
        && let Some((id, is_chunk)) = open.pop()
    {
        if is_chunk {
            found.push(id);
            continue;
        }
        if asked == PARTS {
            break;
        }
        asked += 1;
        let parts = library.first_children(&id, CHUNKS).await?;
        let below = parts.into_iter().rev();
        let below = below.filter_map(|part| match part.document_type.as_str() {
            "chunk" => Some((part.id, true)),
            "page" | "section" => Some((part.id, false)),
            _ => None,
        });
        open.extend(below);
    }
    Ok(found)
}

fn described(document: &DocumentMetadata) -> String {
    let tags = document.tags.join(", ");
    let told = [
        ("Id", document.id.as_str()),
        ("Title", document.title.as_str()),
        ("Media type", document.kind.as_str()),
        ("Comments", document.comments.as_str()),
        ("Tags", tags.as_str()),
    ];
    let told = told.iter().filter(|(_, text)| !text.trim().is_empty());
    let told = told.map(|(name, text)| format!("{name}: {}", cut(text, CHUNK)));
    told.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut(" äöü ", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äöü…");
    }

    #[test]
    fn a_document_is_described_by_what_is_known_of_it() {
        let document = DocumentMetadata {
            id: "urn:d".to_owned(),
            title: "Report".to_owned(),
            tags: vec!["a".to_owned(), "b".to_owned()],
            ..DocumentMetadata::default()
        };
        assert_eq!(described(&document), "Id: urn:d\nTitle: Report\nTags: a, b");
        assert_eq!(titled(&document), "* Report (urn:d)");
    }
}
