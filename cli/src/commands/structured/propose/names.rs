//! Names of fields and schemas that queries can say without change, from what a file calls its columns. Pure.

use std::collections::BTreeSet;

/// Longest name.
const LONGEST: usize = 64;

/// A name as queries take it: small ASCII letters, digits, and `_` between them.
pub(super) fn plain(title: &str) -> String {
    let mut name = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        match c {
            'ä' => name.push_str("ae"),
            'ö' => name.push_str("oe"),
            'ü' => name.push_str("ue"),
            'ß' => name.push_str("ss"),
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if name.ends_with('_') || name.is_empty() => {}
            _ => name.push('_'),
        }
        if name.len() >= LONGEST {
            break;
        }
    }
    let name = name.trim_end_matches('_');
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("field_{name}"),
        false => name.to_owned(),
    }
}

/// Whether a name can be said in queries as it is.
pub(super) fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    let begins = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    begins && name.len() <= LONGEST && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Names of fields, each given once.
#[derive(Debug, Default)]
pub(super) struct Fields(BTreeSet<String>);

impl Fields {
    /// The name of the column that stands at a place, from 1.
    pub(super) fn give(&mut self, title: &str, place: usize) -> String {
        let wanted = match plain(title) {
            name if name.is_empty() => format!("field_{place}"),
            name => name,
        };
        let mut given = wanted.clone();
        for number in 2.. {
            if self.0.insert(given.clone()) {
                break;
            }
            given = format!("{wanted}_{number}");
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_said_in_queries() {
        for (title, wanted) in [
            ("Maker", "maker"),
            ("UTC offset (h)", "utc_offset_h"),
            ("Größe", "groesse"),
            ("2020", "field_2020"),
            ("  ", ""),
            ("名前", ""),
            ("@id", "id"),
        ] {
            assert_eq!(plain(title), wanted);
            assert!(wanted.is_empty() || is_plain(wanted), "{wanted}");
        }
        assert!(!is_plain("2nd") && !is_plain("a-b") && !is_plain(""));
        let mut fields = Fields::default();
        let given = [
            fields.give("A b", 1),
            fields.give("a B", 2),
            fields.give("", 3),
        ];
        assert_eq!(given, ["a_b", "a_b_2", "field_3"]);
    }
}
