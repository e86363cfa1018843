//! Words of English that grammar goes by. Knows no subject.

pub(super) const ARTICLES: &[&str] = &[
    "a", "an", "the", "this", "that", "its", "his", "her", "their", "one",
];
pub(super) const PRONOUNS: &[&str] = &["it", "he", "she"];
/// Words that begin sentences and name nothing.
pub(super) const OPENERS: &[&str] = &[
    "all",
    "although",
    "and",
    "another",
    "any",
    "anybody",
    "anyone",
    "anything",
    "because",
    "both",
    "but",
    "each",
    "either",
    "every",
    "everybody",
    "everyone",
    "everything",
    "except",
    "few",
    "finally",
    "first",
    "here",
    "how",
    "however",
    "i",
    "if",
    "instead",
    "later",
    "many",
    "more",
    "most",
    "neither",
    "no",
    "nobody",
    "none",
    "nor",
    "nothing",
    "now",
    "other",
    "others",
    "several",
    "since",
    "so",
    "some",
    "somebody",
    "someone",
    "something",
    "subject",
    "such",
    "then",
    "there",
    "therefore",
    "these",
    "they",
    "those",
    "though",
    "today",
    "unless",
    "we",
    "what",
    "whatever",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whoever",
    "why",
    "you",
];
pub(super) const BE: &[&str] = &["is", "was", "are", "were"];
pub(super) const AUXILIARIES: &[&str] = &[
    "is", "was", "are", "were", "has", "had", "have", "been", "be",
];
pub(super) const PREPOSITIONS: &[&str] = &[
    "about", "above", "across", "after", "against", "along", "among", "around", "as", "at",
    "before", "behind", "below", "beneath", "beside", "between", "by", "during", "for", "from",
    "in", "inside", "into", "near", "of", "off", "on", "onto", "over", "through", "to", "toward",
    "towards", "under", "until", "up", "upon", "with", "within", "without",
];
/// Prepositions that add another statement about the same deed.
pub(super) const ADDING: &[&str] = &[
    "in", "by", "at", "from", "on", "near", "to", "with", "between", "since", "until",
];
/// Words that say when or whether something holds: what stands before one alone is not what the sentence says.
pub(super) const CONDITIONS: &[&str] = &[
    "except", "if", "instead", "nor", "or", "provided", "rather", "than", "unless", "when",
    "where", "while",
];
pub(super) const ADVERBS: &[&str] = &[
    "also",
    "again",
    "already",
    "always",
    "currently",
    "finally",
    "first",
    "formerly",
    "later",
    "mainly",
    "mostly",
    "never",
    "not",
    "now",
    "often",
    "only",
    "once",
    "originally",
    "partly",
    "probably",
    "soon",
    "still",
    "then",
    "today",
    "twice",
    "usually",
];
/// Verbs whose forms do not end in `-ed` or `-s`, and forms that could be taken for something else.
pub(super) const IRREGULAR: &[&str] = &[
    "became",
    "began",
    "begun",
    "bore",
    "born",
    "bought",
    "broke",
    "broken",
    "brought",
    "built",
    "came",
    "caught",
    "chose",
    "chosen",
    "cut",
    "did",
    "done",
    "drew",
    "drawn",
    "drove",
    "fell",
    "fallen",
    "fed",
    "felt",
    "flew",
    "flow",
    "fought",
    "found",
    "gave",
    "given",
    "got",
    "grew",
    "grown",
    "held",
    "hidden",
    "hit",
    "kept",
    "knew",
    "known",
    "laid",
    "lay",
    "led",
    "left",
    "lent",
    "lit",
    "lost",
    "made",
    "met",
    "overcame",
    "paid",
    "put",
    "ran",
    "read",
    "rose",
    "risen",
    "rang",
    "said",
    "sank",
    "sang",
    "saw",
    "seen",
    "sent",
    "set",
    "shook",
    "shone",
    "shown",
    "sold",
    "spent",
    "spoke",
    "spoken",
    "stole",
    "stolen",
    "stood",
    "struck",
    "sung",
    "sunk",
    "taken",
    "taught",
    "threw",
    "thrown",
    "told",
    "took",
    "understood",
    "went",
    "won",
    "wore",
    "worn",
    "wound",
    "woven",
    "written",
    "wrote",
];
/// Plural nouns and others that only look like verbs.
pub(super) const NOT_VERBS: &[&str] = &[
    "always", "as", "his", "its", "this", "us", "perhaps", "thus", "yes", "bus", "gas",
];
/// Small words that may stand inside a name.
pub(super) const INSIDE: &[&str] = &[
    "of", "the", "de", "la", "le", "du", "von", "van", "&", "der", "di", "da", "del", "and",
];
pub(super) const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
pub(super) fn is(list: &[&str], word: &str) -> bool {
    list.contains(&word.to_lowercase().as_str())
}

pub(super) fn is_big(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
}

pub(super) fn is_number(word: &str) -> bool {
    word.chars().next().is_some_and(|c| c.is_ascii_digit())
}

pub(super) fn is_verb(word: &str) -> bool {
    let lower = word.to_lowercase();
    let lower = lower.as_str();
    if is_big(word) || NOT_VERBS.contains(&lower) || PREPOSITIONS.contains(&lower) {
        return false;
    }
    let s = lower.ends_with('s') && !lower.ends_with("ss") && !lower.ends_with("us");
    AUXILIARIES.contains(&lower)
        || IRREGULAR.contains(&lower)
        || (lower.len() > 3 && (lower.ends_with("ed") || s))
}
