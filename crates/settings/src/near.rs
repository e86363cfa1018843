//! Which setting somebody meant who wrote one that there is not.

use serde::de::Error as _;

use crate::SettingError;

/// Most letters by which two names may differ.
const LETTERS: usize = 2;
/// Longest name that is compared: the work grows by its square, and no setting is as long.
const LONGEST: usize = 100;

/// The mistake, with the setting that is nearest if one is near.
pub(crate) fn not_there<'a>(
    key: &str,
    known: impl Iterator<Item = &'a String> + Clone,
) -> SettingError {
    let fault = SettingError::unknown_field(key, &[]);
    let Some(near) = nearest(key, known) else {
        return fault;
    };
    let rest = fault.message.split_once("; ").map_or("", |(_, rest)| rest);
    SettingError::new(
        key,
        format!("is not a setting; did you mean {near}? {rest}"),
    )
}

fn nearest<'a>(key: &str, known: impl Iterator<Item = &'a String> + Clone) -> Option<&'a str> {
    if key.len() > LONGEST {
        return None;
    }
    let misspelt = known
        .clone()
        .map(|name| (differ(key, name), name.as_str()))
        .filter(|(letters, _)| *letters <= LETTERS && letters * 2 < key.len())
        .min();
    // Without its section a name means something only where one setting alone is called so.
    let mut called = known.filter(|name| name.rsplit('.').next() == Some(key));
    let called = match (called.next(), called.next()) {
        (Some(only), None) => Some(only.as_str()),
        _ => None,
    };
    misspelt.map(|(_, name)| name).or(called)
}

/// How many letters are to be changed, added or left out.
fn differ(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, one) in left.chars().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (column, other) in right.iter().enumerate() {
            let change = corner + usize::from(one != *other);
            corner = row[column + 1];
            row[column + 1] = change.min(corner + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_setting_is_offered_and_nothing_far() {
        let known = [
            "llm.model",
            "llm.key",
            "embeddings.model",
            "gateway.tls_cert",
            "bus",
        ];
        let known = known.map(str::to_owned);
        let near = |key: &str| nearest(key, known.iter());
        assert_eq!(near("llm.modell"), Some("llm.model"));
        assert_eq!(near("llm_model"), Some("llm.model"));
        assert_eq!(near("tls_cert"), Some("gateway.tls_cert"));
        assert_eq!(near("model"), None, "there are two");
        for far in ["typo", "b", "", "llm.colour", &"x".repeat(1 << 20)] {
            assert_eq!(near(far), None, "{far:.20}");
        }
        assert_eq!(differ("kitten", "sitting"), 3);
        assert_eq!(differ("", "abc"), 3);
    }
}
