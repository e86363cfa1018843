//! The processors as others meet them: documents in, chunks with provenance out, bad documents dead-lettered.

mod kinds;
mod system;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use system::System;
use tg_document::kind;
use tg_document::title::title;
use tg_schemas::Term;
use tg_testkit::place::Place;

const SECOND: &str = "\u{20}is the second paragraph, and long enough to be a chunk of its own.";

async fn plain_text_becomes_chunks_that_can_be_traced(place: Place) {
    let system = System::start(&place, &[("chunk-size", "60"), ("chunk-overlap", "0")]).await;
    let text = format!("Préface: the first paragraph of this text.\n\nHere{SECOND}");
    system.put("urn:doc:a", "text/plain", text.as_bytes());
    system.load_text("urn:doc:a", "").await;
    let mut chunks = system.chunks(3).await;
    chunks.sort_by_key(|chunk| text.find(&chunk.chunk));
    assert_eq!(
        chunks[0].chunk,
        "Préface: the first paragraph of this text."
    );
    for chunk in &chunks {
        let metadata = chunk.metadata.clone().unwrap();
        assert_eq!(metadata.id, chunk.document_id);
        assert_eq!(
            (metadata.root.as_str(), metadata.collection.as_str()),
            ("urn:doc:a", "c")
        );
        let kept = system
            .child(&chunk.document_id)
            .expect("the library has it");
        assert_eq!(
            (kept.parent_id.as_str(), kept.document_type.as_str()),
            ("urn:doc:a", "chunk")
        );
    }
    let second = &chunks[1];
    let offset = text[..text.find(&second.chunk).unwrap()].chars().count();
    let told = |predicate: &str| system.object(&second.document_id, predicate);
    assert_eq!(
        told("https://trustgraph.ai/ns/charOffset"),
        Some(Term::literal(offset.to_string()))
    );
    let length = second.chunk.chars().count();
    assert_eq!(
        told("https://trustgraph.ai/ns/charLength"),
        Some(Term::literal(length.to_string()))
    );
    let parent = told("http://www.w3.org/ns/prov#wasDerivedFrom");
    assert_eq!(parent, Some(Term::iri("urn:doc:a")));
    assert_eq!(
        system.triples_records(),
        1,
        "one record describes the batch"
    );
}

async fn doing_it_again_makes_the_same_things_and_leaves_unchanged_ones_alone(place: Place) {
    let system = System::start(&place, &[("chunk-size", "20"), ("chunk-overlap", "0")]).await;
    system.put(
        "urn:doc:a",
        "text/plain",
        b"first paragraph.\n\nsecond paragraph.",
    );
    system.load_text("urn:doc:a", "").await;
    let ids = system.ids(2).await;
    system.load_text("urn:doc:a", "").await;
    let again = system.ids(4).await;
    assert_eq!(ids, again, "the same ids again");
    system.complete();
    system.put(
        "urn:doc:a",
        "text/plain",
        b"first paragraph.\n\nnew paragraph.\n\nsecond paragraph.",
    );
    system.load_text("urn:doc:a", "").await;
    let chunks = system.chunks(5).await;
    assert_eq!(
        chunks[4].chunk, "new paragraph.",
        "only the new one is handed on"
    );
}

async fn a_markdown_document_goes_through_a_section(place: Place) {
    let system = System::start(&place, &[]).await;
    system.put(
        "urn:doc:m",
        "text/markdown",
        b"# Bridges\r\n\r\nThe oldest one.",
    );
    system.load_document("urn:doc:m", "").await;
    let chunk = system.chunks(1).await.remove(0);
    assert_eq!(chunk.chunk, "# Bridges\n\nThe oldest one.");
    let section = system.child(&chunk.document_id).unwrap().parent_id;
    let section = system.child(&section).unwrap();
    assert_eq!(
        (section.document_type.as_str(), section.parent_id.as_str()),
        ("section", "urn:doc:m")
    );
    assert_eq!(chunk.metadata.unwrap().root, "urn:doc:m");
}

/// What the graph's chunks are read with: title, headings, the names of a table's columns; the chunks stay slices.
async fn chunks_know_where_they_stand(place: Place) {
    let system = System::start(&place, &[("chunk-size", "60"), ("chunk-overlap", "0")]).await;
    let text = "# Blue\n\nThey are made of glass, all of them, and shine.\n\n## Prices\n\n| lamp | price |\n|---|---|\n\
                | of the first kind | 10 |\n| of the second kind | 20 |\n| of the third kind | 30 |\n";
    system.put_titled("urn:doc:m", "text/markdown", "Lamps", text.as_bytes());
    system.load_document("urn:doc:m", "").await;
    let chunks = system.chunks(4).await;
    for (word, context) in [
        ("glass", "Lamps > Blue"),
        ("lamp | price", "Lamps > Blue > Prices"),
        ("third kind", "Lamps > Blue > Prices\n| lamp | price |"),
    ] {
        let chunk = chunks.iter().find(|chunk| chunk.chunk.contains(word));
        let chunk = chunk.unwrap_or_else(|| panic!("no chunk has {word}: {chunks:?}"));
        assert_eq!(chunk.context, context);
        assert!(text.contains(&chunk.chunk));
        let kept = system.child(&chunk.document_id).unwrap();
        assert_eq!(kept.comments, context, "the library has it, too");
    }
    let page = b"<meta charset=iso-8859-1><h1>Caf\xe9s</h1><p>In M\xfcnchen.<table><tr><th>a<th>b<tr><td>1<td>2</table>";
    system.put_titled("urn:doc:h", "text/html", "Guide", page);
    system.load_document("urn:doc:h", "").await;
    let chunks = system.chunks(5).await;
    assert!(chunks[4].chunk.contains("In München."), "{chunks:?}");
    assert_eq!(chunks[4].context, "Guide > Cafés");
    system.put("urn:doc:l", "text/plain", b"caf\xe9 au lait");
    system.load_text("urn:doc:l", "").await;
    assert_eq!(system.chunks(6).await[5].chunk, "café au lait");
}

/// Kind and title as whoever adds a document finds them; words, headings and tables as it has them.
async fn documents_as_people_have_them_are_read(place: Place) {
    let system = System::start(&place, &[("chunk-size", "160"), ("chunk-overlap", "0")]).await;
    for fixture in kinds::all() {
        let (name, content) = (fixture.name, fixture.content.as_slice());
        let head = &content[..content.len().min(kind::HEAD)];
        let found = kind::detect(head, kind::declared(name));
        let found = found.unwrap_or_else(|why| panic!("{name} {why}"));
        let mime = found.mime(kind::declared(name));
        let title = title(found, &mime, content).unwrap_or_else(|| name.to_owned());
        assert_eq!(title, fixture.title, "{name}");
        let id = format!("urn:doc:{name}");
        system.put_titled(&id, &mime, &title, content);
        system.load_document(&id, "").await;
        for (words, context) in fixture.expected {
            let chunk = system.chunk_of(&id, words).await;
            assert_eq!(chunk.context, *context, "{name}: {words}");
        }
    }
    let frame = ["Startseite", "Impressum", "Kekse", "Mehr zum Thema"];
    let kept = frame.map(|words| system.is_kept(words));
    assert_eq!(kept, [false; 4], "{frame:?}");
}

async fn a_pdf_goes_through_its_pages(place: Place) {
    let system = System::start(&place, &[]).await;
    system.put(
        "urn:doc:p",
        "application/pdf",
        include_bytes!("../fixtures/bridges.pdf"),
    );
    system.load_document("urn:doc:p", "").await;
    let mut chunks = system.chunks(2).await;
    chunks.sort_by_key(|chunk| !chunk.chunk.contains("bridge"));
    for (chunk, number, words) in [
        (&chunks[0], "1", "built of stone"),
        (&chunks[1], "3", "tallest tower"),
    ] {
        assert!(chunk.chunk.contains(words), "{}", chunk.chunk);
        assert_eq!(chunk.context, format!("page {number}"));
        let page = system.child(&chunk.document_id).unwrap().parent_id;
        let kept = system.child(&page).unwrap();
        assert_eq!(
            (kept.document_type.as_str(), kept.title),
            ("page", format!("Page {number}"))
        );
        let told = system.object(&page, "https://trustgraph.ai/ns/pageNumber");
        assert_eq!(told, Some(Term::literal(number)));
        let parent = system.object(&page, "http://www.w3.org/ns/prov#wasDerivedFrom");
        assert_eq!(parent, Some(Term::iri("urn:doc:p")));
    }
}

async fn content_that_came_by_itself_gets_a_document(place: Place) {
    let system = System::start(&place, &[]).await;
    system.load_text("", "Some text that came by itself.").await;
    let html = STANDARD.encode("<html><p>A page that came by itself.</p></html>");
    system.load_document("urn:mine", &html).await;
    let chunks = system.chunks(2).await;
    let mut roots: Vec<String> = chunks
        .iter()
        .map(|chunk| chunk.metadata.clone().unwrap().root)
        .collect();
    roots.sort();
    assert_eq!(roots, ["urn:hashed", "urn:mine"]);
    let kind = system.object("urn:mine", "https://trustgraph.ai/ns/mimeType");
    assert_eq!(kind, Some(Term::literal("text/html")));
}

async fn bad_documents_are_dead_letter_by_name_and_others_go_on(place: Place) {
    let system = System::start(&place, &[]).await;
    for (id, kind, content, why) in [
        ("urn:empty", "text/plain", &b""[..], "is empty"),
        ("urn:blank", "text/markdown", b" \n\t\n", "has no text"),
        ("urn:binary", "text/plain", b"ab\0\x01\x02", "is binary"),
        (
            "urn:fault",
            "text/plain",
            b"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 caf\xe9",
            "is not UTF-8",
        ),
        (
            "urn:wrong",
            "application/pdf",
            b"just text",
            "declared as a PDF",
        ),
        (
            "urn:cut",
            "application/pdf",
            b"%PDF-1.7 and no more",
            "is damaged",
        ),
        (
            "urn:image",
            "image/png",
            b"\x89PNG\r\n\x1a\n",
            "is an image",
        ),
        ("urn:zip", kind_docx(), b"PK\x03\x04 nonsense", "is damaged"),
    ] {
        system.put(id, kind, content);
        system.load_document(id, "").await;
        let told = system.dead_letter().await;
        assert!(told.contains(id) && told.contains(why), "{id}: {told}");
        assert!(told.contains("dead"), "{told}");
    }
    for text in ["", " \n "] {
        let id = format!("urn:text:{}", text.len());
        system.put(&id, "text/plain", b" \n\n ");
        system.load_text(&id, text).await;
        let told = system.dead_letter().await;
        assert!(told.contains("has no text"), "{told}");
    }
    system.load_document("urn:nowhere", "").await;
    let told = system.dead_letter().await;
    assert!(told.contains("urn:nowhere"), "{told}");
    system.put("urn:good", "text/plain", b"All is well.");
    system.load_document("urn:good", "").await;
    assert_eq!(system.chunks(1).await[0].chunk, "All is well.");
}

/// 34.5: a decoder that is killed for memory. The kill is that of the system: nothing is told before it.
async fn a_killed_decoder_is_named_with_its_document_and_the_next_is_read(place: Place) {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "F={}/$$; /bin/cat >$F; if /bin/grep -q 'Too much' $F; then kill -9 $$; fi; exec \"$DECODE\" \"$@\" <$F",
        folder.path().display()
    );
    let system = System::scripted(&place, &script).await;
    let killed = [
        ("urn:html", "text/html", &b"<p>Too much"[..], "HTML"),
        ("urn:pdf", "application/pdf", b"%PDF-1.7 Too much", "PDF"),
    ];
    for (id, kind, content, decoder) in killed {
        system.put(id, kind, content);
        system.load_document(id, "").await;
        let told = system.dead_letter().await;
        let why = format!(
            "document '{id}' could not be read within the memory allowed: the {decoder} decoder was killed"
        );
        assert!(told.contains(&why), "{told}");
    }
    system.put("urn:next", "text/html", b"<p>All is well.");
    system.load_document("urn:next", "").await;
    assert_eq!(system.chunks(1).await[0].chunk, "All is well.");
}

fn kind_docx() -> &'static str {
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
}

async fn a_long_text_passes_in_windows_with_exact_offsets(place: Place) {
    let size = [("chunk-size", "60000"), ("chunk-overlap", "1000")];
    let system = System::start(&place, &size).await;
    let line = "Zeile über Brücken und Türme, recht lang.\n\n";
    let text = line.repeat((5 << 20) / line.len());
    system.put("urn:long", "text/plain", text.as_bytes());
    system.load_text("urn:long", "").await;
    let one = text.chars().count();
    let chunks = system.chunks_of(one).await;
    let sum: usize = chunks.iter().map(|chunk| chunk.chunk.chars().count()).sum();
    assert!(sum < one + chunks.len() * 1000);
    let chars: Vec<char> = text.chars().collect();
    let mut last = 0;
    for chunk in &chunks {
        let offset = system.object(&chunk.document_id, "https://trustgraph.ai/ns/charOffset");
        let Some(Term::Literal { value, .. }) = offset else {
            panic!("an offset");
        };
        let offset: usize = value.parse().unwrap();
        let length = chunk.chunk.chars().count();
        let there: String = chars[offset..offset + length].iter().collect();
        assert!(there == chunk.chunk, "the chunk is at its offset {offset}");
        last = last.max(offset + length);
    }
    assert!(last >= text.trim_end().chars().count());
}

tg_testkit::on_both_buses!(
    plain_text_becomes_chunks_that_can_be_traced,
    doing_it_again_makes_the_same_things_and_leaves_unchanged_ones_alone,
    a_markdown_document_goes_through_a_section,
    chunks_know_where_they_stand,
    documents_as_people_have_them_are_read,
    a_pdf_goes_through_its_pages,
    content_that_came_by_itself_gets_a_document,
    bad_documents_are_dead_letter_by_name_and_others_go_on,
    a_killed_decoder_is_named_with_its_document_and_the_next_is_read,
    a_long_text_passes_in_windows_with_exact_offsets,
);
