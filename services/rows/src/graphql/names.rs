//! GraphQL names for tables and fields, which may be called anything.

use std::collections::BTreeSet;

/// Names given out so far.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// These are taken already.
    pub(super) fn without(reserved: &[&str]) -> Self {
        Self(reserved.iter().map(|name| (*name).to_owned()).collect())
    }

    /// A valid name nobody has yet, the wanted one if possible: other characters become `_`, a leading digit
    /// gets one before it, `__` at the beginning (which GraphQL keeps for itself) an `x`; a name that is
    /// taken gets a number behind it.
    pub(super) fn give(&mut self, wanted: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name: String = wanted.chars().map(plain).collect();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, '_');
        }
        if name.starts_with("__") {
            name.insert(0, 'x');
        }
        let mut given = name.clone();
        for number in 2.. {
            if self.0.insert(given.clone()) {
                break;
            }
            given = format!("{name}_{number}");
        }
        given
    }
}

/// A table's name as types have it: the first letter large, the others small.
pub(super) fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.flat_map(char::to_lowercase)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_becomes_a_valid_one_of_its_own() {
        let mut names = Names::without(&["Query"]);
        let given: Vec<_> = [
            "my-table",
            "my table",
            "2nd",
            "__typename",
            "größe",
            "",
            "Query",
        ]
        .iter()
        .map(|name| names.give(name))
        .collect();
        assert_eq!(
            given,
            [
                "my_table",
                "my_table_2",
                "_2nd",
                "x__typename",
                "gr__e",
                "_",
                "Query_2"
            ]
        );
        assert_eq!(capitalised("cityStates"), "Citystates");
    }
}
