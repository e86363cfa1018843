//! Which command somebody may mean who typed another name.

use crate::commands::SYNONYMS;

/// A command's name, and its line of help.
pub type Named = (&'static str, &'static str);

/// Commands named at most.
const MOST: usize = 5;
/// So alike, it is a slip of the finger. Of two equal texts it is 1, by Damerau and Levenshtein.
const SLIP: f64 = 0.8;
/// So alike, it may be meant.
const LIKE: f64 = 0.6;

/// The commands that a word may stand for, the likeliest first.
pub fn like(word: &str, all: &[Named]) -> Vec<Named> {
    let word = word.to_lowercase();
    let word = word.trim_start_matches("tg-");
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(word, name);
    let mut near: Vec<(f64, Named)> = all.iter().map(|row| (likeness(row.0), *row)).collect();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    if let Some((likeness, row)) = near.first()
        && *likeness >= SLIP
    {
        return vec![*row];
    }
    let meant = SYNONYMS.iter().find(|(synonym, _)| *synonym == word);
    let meant = meant.into_iter().flat_map(|(_, names)| *names);
    let meant = meant.filter_map(|name| all.iter().find(|row| row.0 == *name));
    let stem = word.strip_suffix('s').unwrap_or(word);
    let stem = if stem.len() < 3 { word } else { stem };
    let named = all.iter().filter(|row| row.0.contains(stem));
    let about = all.iter().filter(|row| row.1.to_lowercase().contains(stem));
    let near = near.iter().filter(|(likeness, _)| *likeness >= LIKE);
    let near = near.map(|(_, row)| row);
    let mut found: Vec<Named> = Vec::new();
    for row in meant.chain(named).chain(near).chain(about) {
        if found.len() < MOST && !found.contains(row) {
            found.push(*row);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ALL;

    fn found(word: &str) -> Vec<Named> {
        let all: Vec<Named> = ALL.iter().map(|row| (row.name, row.about)).collect();
        like(word, &all)
    }

    fn names(word: &str) -> Vec<&'static str> {
        found(word).iter().map(|row| row.0).collect()
    }

    #[test]
    fn a_slip_is_one_command() {
        assert_eq!(names("invoke-agnt"), ["invoke-agent"]);
        assert_eq!(names("dead-leters"), ["dead-letters"]);
        assert_eq!(names("tg-show-flow"), ["show-flows"]);
    }

    #[test]
    fn a_word_finds_what_it_means() {
        assert_eq!(
            names("flows")[..3],
            ["show-flows", "start-flow", "stop-flow"]
        );
        assert_eq!(names("status")[0], "doctor");
        assert!(names("turtle").contains(&"graph-to-turtle"));
        assert_eq!(names("xyzzy"), Vec::<&str>::new());
        assert!(found("e").len() <= MOST);
    }
}
