//! Looking into the objects of a PDF. What is missing or of another type is `None`, never a panic.

use pdf_extract::{Dictionary, Document, Object, Stream};

/// `[a b c d e f]`, as PDF writes it.
pub(super) type Matrix = [f64; 6];

/// What an object is, behind references.
pub(super) fn at<'a>(document: &'a Document, object: &'a Object) -> Option<&'a Object> {
    document.dereference(object).ok().map(|(_, object)| object)
}

/// An entry of a dictionary.
pub(super) fn get<'a>(
    document: &'a Document,
    dictionary: &'a Dictionary,
    key: &[u8],
) -> Option<&'a Object> {
    at(document, dictionary.get(key).ok()?)
}

/// An entry that is a dictionary, or the dictionary of a stream.
pub(super) fn dictionary<'a>(
    document: &'a Document,
    within: &'a Dictionary,
    key: &[u8],
) -> Option<&'a Dictionary> {
    match get(document, within, key)? {
        Object::Dictionary(found) => Some(found),
        Object::Stream(stream) => Some(&stream.dict),
        _ => None,
    }
}

/// An entry that is an array of numbers; what is none counts as 0.
pub(super) fn numbers(document: &Document, within: &Dictionary, key: &[u8]) -> Option<Vec<f64>> {
    let array = get(document, within, key)?.as_array().ok()?;
    let number = |object| at(document, object).and_then(number).unwrap_or(0.0);
    Some(array.iter().map(number).collect())
}

/// An entry that is a name.
pub(super) fn name<'a>(
    document: &'a Document,
    within: &'a Dictionary,
    key: &[u8],
) -> Option<&'a [u8]> {
    get(document, within, key)?.as_name().ok()
}

/// A number of either kind.
pub(super) fn number(object: &Object) -> Option<f64> {
    match object {
        #[allow(clippy::cast_precision_loss)]
        Object::Integer(number) => Some(*number as f64),
        Object::Real(number) => Some(f64::from(*number)),
        _ => None,
    }
}

/// What is in a stream.
pub(super) fn content(stream: &Stream) -> Vec<u8> {
    if stream.filters().is_ok() {
        let plain = stream.decompressed_content();
        plain.unwrap_or_else(|_| stream.content.clone())
    } else {
        stream.content.clone()
    }
}

/// An entry of a page, or of what stands above it in the tree.
pub(super) fn inherited<'a>(
    document: &'a Document,
    page: &'a Dictionary,
    key: &[u8],
) -> Option<&'a Object> {
    /// Deeper trees are not believed.
    const DEEPEST: usize = 64;
    let mut here = page;
    for _ in 0..DEEPEST {
        if let Some(found) = get(document, here, key) {
            return Some(found);
        }
        here = dictionary(document, here, b"Parent")?;
    }
    None
}
