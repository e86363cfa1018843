//! Words of English text: splitting, dropping what carries no meaning, and deciding whether two words
//! are about the same thing. Knows the language a little and no subject at all.

use super::languages::{is_han, is_hiragana};

const STOP: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been",
    "being", "but", "by", "can", "could", "describe", "did", "do", "does", "each", "every",
    "exactly", "explain", "find", "for", "from", "get", "give", "had", "has", "have", "having",
    "he", "her", "his", "how", "i", "if", "in", "into", "is", "it", "its", "know", "known", "list",
    "look", "made", "many", "me", "much", "my", "of", "on", "or", "our", "out", "please", "s",
    "say", "says", "she", "show", "some", "tell", "than", "that", "the", "their", "them", "there",
    "these", "they", "this", "those", "through", "to", "us", "use", "using", "was", "we", "were",
    "what", "whats", "when", "where", "which", "who", "whom", "whose", "why", "will", "with",
    "would", "you", "your",
];

/// Days, months and seasons; "may" is another word more often.
const TIMES: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "spring",
    "summer",
    "autumn",
    "winter",
    "morning",
    "noon",
    "evening",
    "night",
    "midnight",
];

/// Numbers in words.
const NUMBERS: &[&str] = &[
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "dozen",
    "hundred",
    "hundredth",
    "thousand",
    "million",
    "half",
    "once",
    "twice",
];

/// Words of one row speak of the same thing.
const ALIKE: &[&[&str]] = &[
    &["born", "birth", "birthplace", "birthdate", "birthday"],
    &[
        "die",
        "died",
        "dead",
        "death",
        "deceased",
        "deathdate",
        "deathplace",
    ],
    &["spouse", "married", "marry", "wife", "husband", "partner"],
    &["parent", "father", "mother"],
    &["child", "children", "son", "daughter"],
    &[
        "located", "location", "place", "situated", "lies", "stand", "stands", "where", "city",
        "country", "region",
    ],
    &[
        "build",
        "built",
        "builder",
        "construct",
        "construction",
        "erected",
        "completed",
        "completion",
        "builtin",
    ],
    &["write", "wrote", "written", "author", "writer"],
    &[
        "create",
        "created",
        "creator",
        "made",
        "maker",
        "make",
        "manufacturer",
        "produce",
        "producer",
    ],
    &["paint", "painted", "painter", "artist"],
    &["compose", "composed", "composer"],
    &["design", "designed", "designer", "architect"],
    &["direct", "directed", "director"],
    &["publish", "published", "publisher", "publication"],
    &[
        "found",
        "founded",
        "founder",
        "established",
        "inception",
        "foundation",
    ],
    &["begin", "began", "begun", "start", "started"],
    &["end", "ended", "finish", "finished"],
    &["open", "opened", "opening"],
    &[
        "population",
        "people",
        "inhabitant",
        "inhabitants",
        "populated",
    ],
    &["height", "tall", "high", "elevation"],
    &["length", "long"],
    &["width", "wide"],
    &["depth", "deep"],
    &["area", "size", "big", "large"],
    &["weight", "mass", "heavy", "weigh", "weighs"],
    &["age", "old"],
    &["cost", "price", "expensive", "fee", "charge"],
    &["pay", "pays", "paid", "payment", "payable", "due"],
    &["licence", "license", "licensed", "licenced"],
    &["week", "weekly"],
    &["year", "yearly", "annual", "annually"],
    &["owner", "own", "owns", "owned", "belong", "belongs"],
    &["lead", "leads", "led", "leader", "head", "chief"],
    &["rule", "ruled", "ruler", "king", "queen", "reign"],
    &["name", "named", "called", "label", "title"],
    &["kind", "type", "sort", "class", "category"],
    &[
        "job",
        "work",
        "works",
        "occupation",
        "profession",
        "employer",
    ],
    &["speak", "spoken", "speaks", "language"],
    &["color", "colour"],
    &["discover", "discovered", "discoverer", "discovery"],
    &["invent", "invented", "inventor", "invention"],
    &["flow", "flows", "mouth"],
    &["win", "won", "winner", "award"],
    &[
        "study",
        "studied",
        "studies",
        "school",
        "university",
        "education",
    ],
    &["cross", "crosses", "spans", "span"],
    &["year", "date", "day", "time"],
];

/// Number of words, the stand-in for tokens.
pub fn count(text: &str) -> i64 {
    text.split_whitespace().count() as i64
}

/// Lower-case words; `camelCase` and `snake_case` come apart. Chinese and Japanese are written without spaces: there each
/// character is a word, and endings are none.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut lower_before = false;
    for c in text.chars() {
        if is_han(c) {
            take(&mut words, &mut word);
            words.push(c.to_string());
            lower_before = false;
        } else if c == '\'' || c == '\u{2019}' || is_hiragana(c) {
            // Kept out of words, so that "bridge's" gives "bridge" and "s".
            take(&mut words, &mut word);
            lower_before = false;
        } else if c.is_alphanumeric() {
            if c.is_uppercase() && lower_before {
                take(&mut words, &mut word);
            }
            lower_before = c.is_lowercase() || c.is_numeric();
            word.extend(c.to_lowercase());
        } else {
            take(&mut words, &mut word);
            lower_before = false;
        }
    }
    take(&mut words, &mut word);
    words
}

fn take(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

/// Words that carry meaning.
pub(super) fn content(text: &str) -> Vec<String> {
    let mut words = split(text);
    words.retain(|word| !is_stop(word));
    words
}

/// Whether a lower-case word carries no meaning of its own.
pub(super) fn is_stop(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

/// The word without its usual endings.
pub(super) fn stem(word: &str) -> &str {
    for ending in [
        "ingly", "ings", "ing", "ies", "ied", "ed", "es", "s", "y", "e",
    ] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.chars().count() >= 3
            && !(ending == "s" && stem.ends_with('s'))
        {
            return stem;
        }
    }
    word
}

/// Whether two lower-case words are forms of the same word.
pub(super) fn same(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    same_stem(stem(a), stem(b))
}

/// Whether two words are forms of the same word, by what [`stem`] makes of them.
pub(super) fn same_stem(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.starts_with(short) && (short.len() == long.len() || short.chars().count() >= 5)
}

/// Words of the same thing as a lower-case word.
pub(super) fn kin(word: &str) -> Vec<&'static str> {
    let rows = ALIKE
        .iter()
        .filter(|row| row.iter().any(|other| same(other, word)));
    rows.flat_map(|row| row.iter().copied()).collect()
}

/// Whether a lower-case word is a number.
pub(super) fn is_number(word: &str) -> bool {
    NUMBERS.contains(&word)
}

/// Whether a lower-case word says when something is, as days and months do.
pub(super) fn is_time(word: &str) -> bool {
    TIMES.contains(&word)
}

/// Whether two lower-case words speak of the same thing.
pub(super) fn alike(a: &str, b: &str) -> bool {
    same(a, b)
        || ALIKE.iter().any(|row| {
            let has = |word: &str| row.iter().any(|other| same(other, word));
            has(a) && has(b)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_list_can_be_searched() {
        assert!(STOP.is_sorted());
    }

    #[test]
    fn names_of_properties_come_apart() {
        assert_eq!(split("birthPlace"), ["birth", "place"]);
        assert_eq!(
            split("http://e.x/Old_Bridge#built2"),
            ["http", "e", "x", "old", "bridge", "built2"]
        );
        assert_eq!(
            content("When was the Bridge's span built?"),
            ["bridge", "span", "built"]
        );
    }

    #[test]
    fn characters_are_words() {
        assert_eq!(split("橋は1429年に建てられた"), ["橋", "1429", "年", "建"]);
        assert_eq!(split("この\u{30ab}\u{30bf}ログ"), ["\u{30ab}\u{30bf}ログ"]);
    }

    #[test]
    fn forms_and_kin_match_and_others_do_not() {
        assert!(same("bridges", "bridge"));
        assert!(same("designed", "designer"));
        assert!(same("cities", "city"));
        assert!(alike("born", "birthplace"));
        assert!(alike("wrote", "author"));
        assert!(!alike("built", "birth"));
        assert!(!same("class", "clay"));
    }
}
