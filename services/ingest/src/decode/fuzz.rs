//! Documents that are none: web pages and Word files. PDFs run in a child that may end.

use std::io::Write;

use tg_testkit::fuzz::run;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{Format, Limits, STACK, docx, html};

fn archive(xml: &[u8]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer
        .start_file("word/document.xml", SimpleFileOptions::default())
        .expect("started");
    writer.write_all(xml).expect("written");
    writer.finish().expect("finished").into_inner()
}

const BODY: &[u8] = b"<w:document xmlns:w=\"x\"><w:body><w:p><w:pPr><w:pStyle w:val=\"Heading1\"/></w:pPr><w:r>\
    <w:t>A &amp; b</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>c</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
    </w:body></w:document>";

const CHANGED: &[u8] = b"<w:document><w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:moveFrom><w:t>a</w:t></w:moveFrom>\
    <mc:AlternateContent><mc:Choice><w:txbxContent><w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc><w:t>b</w:t></w:tc></w:tr>\
    </w:tbl></w:txbxContent></mc:Choice><mc:Fallback><w:t>b</w:t></mc:Fallback></mc:AlternateContent></w:p></w:document>";

#[test]
fn word_files() {
    let limits = Limits::default();
    let whole = archive(BODY);
    run("archives of Word", &[&whole], |bytes| {
        let _ = docx::decode(bytes, &limits);
    });
    run("bodies of Word", &[BODY, CHANGED], |bytes| {
        let _ = docx::decode(&archive(bytes), &limits);
    });
    // What the library does with the names of a tag's attributes grows with their square, unless it is told not to.
    let many: String = (0..100_000).map(|n| format!(" a{n}=\"\"")).collect();
    let tag = format!("<w:p><w:pStyle{many}/><w:t>a</w:t></w:p>");
    run("tags of Word", &[tag.as_bytes()], |bytes| {
        let _ = docx::decode(&archive(bytes), &limits);
    });
}

#[test]
fn web_pages() {
    let seeds: [&[u8]; 4] = [
        b"<pre>c</ul>",
        b"<table><tr><p>a<template><svg><b x=1><i>c</b></div></table><select><option>d",
        b"<!doctype html><title>t</title><h1>a</h1><p>b <b>c</b> &copy; &#x110000;<table><tr><td>d</table><script>e",
        b"<ul><li>a<li>b<ol><li>c</ul><pre>d\n  e</pre><a href='f'>g</a><img alt=h src=data:,>",
    ];
    let pages = move || {
        run("web pages", &seeds, |bytes| {
            let _ = html::decode(bytes);
        });
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(pages);
    let outcome = thread.expect("a thread").join();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn arguments_of_the_child() {
    let seed = Limits::default().to_argument();
    run("arguments of the child", &[seed.as_bytes()], |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = (Limits::from_argument(&text), Format::parse(&text));
    });
}
