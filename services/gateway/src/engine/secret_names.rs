//! Names of what is secret: keys of configuration, variables of an environment, headers, parameters of an address. It knows
//! words only, no values.

/// A key whose last word is one of these holds a secret, or several.
const SECRET: [&str; 24] = [
    "auth",
    "password",
    "passwords",
    "passwd",
    "pass",
    "passphrase",
    "pwd",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "dsn",
    "apikey",
    "apikeys",
    "jwt",
    "pat",
    "sas",
    "sig",
    "signature",
    "oauth",
];
/// One word that ends so is made of several: `PGPASSWORD`, `clientsecret`.
const SUFFIXES: [&str; 20] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "credentials",
    "apikey",
    "apitoken",
    "accesskey",
    "accesstoken",
    "authtoken",
    "privatekey",
    "secretkey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "accountkey",
    "sessiontoken",
    "refreshtoken",
    "bearertoken",
];
/// What says how a secret is written, or that it is one: `api-key-value`, `PASSWORD_B64`.
const FORMS: [&str; 6] = ["value", "hash", "b64", "base64", "hex", "pem"];
/// What `token` is the end of where it is counted: `max-token`.
const COUNTED: [&str; 8] = [
    "max",
    "min",
    "per",
    "input",
    "output",
    "prompt",
    "completion",
    "total",
];
/// What `key` is the end of where it is a name and no secret.
const NAMES: [&str; 9] = [
    "primary",
    "public",
    "foreign",
    "partition",
    "sort",
    "cache",
    "group",
    "row",
    "index",
];
/// What a key holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number under it is a number of tokens or of keys.
    Counted,
    /// The same, also where it is written as text.
    Count,
    Hidden,
}

impl Kind {
    /// Whether a text is a secret under such a key.
    pub(crate) fn hides_text(self, text: &str) -> bool {
        self != Self::Count || text.parse::<f64>().is_err()
    }
}

/// Whether a word is what JSON schema calls a type: what has one describes a value, and is none.
pub(crate) fn is_type(word: &str) -> bool {
    const TYPES: [&str; 7] = [
        "array", "boolean", "integer", "null", "number", "object", "string",
    ];
    TYPES.contains(&word)
}

/// The words of a key, however they are set apart: `client-secret`, `client_secret`, `clientSecret`, `DBPassword`.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = key.chars().peekable();
    let (mut lower, mut upper) = (false, false);
    while let Some(letter) = letters.next() {
        // The last capital of several is the first letter of the next word, but for a plural: `APIKeys`, `URLs`.
        let next = letters.peek().is_some_and(|next| next.is_lowercase());
        let begins = letter.is_uppercase() && (lower || (upper && next));
        if !letter.is_alphanumeric() || begins {
            words.push(String::new());
        }
        (lower, upper) = (letter.is_lowercase(), letter.is_uppercase());
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    // `PASSWORD_2`, `password2`
    for word in &mut words {
        let bare = word
            .trim_end_matches(|letter: char| letter.is_ascii_digit())
            .len();
        if !FORMS.contains(&word.as_str()) {
            word.truncate(bare);
        }
    }
    words.retain(|word| !word.is_empty());
    while words.len() > 1
        && words
            .last()
            .is_some_and(|word| FORMS.contains(&word.as_str()))
    {
        words.pop();
    }
    words
}

/// Whether a key holds a secret.
pub(crate) fn secret(key: &str) -> Option<Kind> {
    let words = words(key);
    let mut words = words.iter().rev().map(String::as_str);
    match (words.next()?, words.next()) {
        // The key of a row or of a map, and the names of keys.
        ("key", None) => None,
        ("keys", None) => None,
        ("key" | "keys", Some(before)) => (!NAMES.contains(&before)).then_some(Kind::Counted),
        ("tokens", _) => Some(Kind::Count),
        ("token", Some(before)) if COUNTED.contains(&before) => Some(Kind::Count),
        ("token", _) => Some(Kind::Counted),
        ("string", Some("connection")) => Some(Kind::Hidden),
        (last, _) => {
            let ends = |end: &&str| last.ends_with(*end);
            let is_secret = SECRET.contains(&last) || SUFFIXES.iter().any(ends);
            is_secret.then_some(Kind::Hidden)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_however_they_are_written() {
        for name in [
            "api-key",
            "api_key",
            "apiKey",
            "APIKey",
            "APIKEY",
            "OPENAI_API_KEY",
            "x-api-key",
            "DBPassword",
            "dbPassword",
            "PGPASSWORD",
            "MYSQL_PWD",
            "KEY_PASSPHRASE",
            "SSH_PASSPHRASE",
            "sslPassphrase",
            "clientsecret",
            "ClientSecret",
            "CLIENT_SECRET",
            "AWS_SECRET_ACCESS_KEY",
            "awsSecretAccessKey",
            "password2",
            "PASSWORD_1",
            "api_key_value",
            "PASSWORD_B64",
            "password-hash",
            "connectionString",
            "Authorization",
            "Proxy-Authorization",
            "Set-Cookie",
            "dsn",
            "SENTRY_DSN",
            "authtoken",
            "GITHUB_TOKEN",
            "HF_TOKEN",
            "privateKey",
            "private_key_pem",
            "jwt",
            "credentials",
            "access_token",
        ] {
            assert!(secret(name).is_some(), "{name}");
        }
    }

    #[test]
    fn other_names_are_none() {
        for name in [
            "key",
            "keys",
            "KEY",
            "primary_key",
            "public-key",
            "sortKey",
            "token-cost",
            "token_costs",
            "monkey",
            "ketoken",
            "author",
            "passage",
            "compass",
            "password-policy",
            "secretary",
            "url",
            "path",
            "pattern",
            "tokenizer",
            "signal",
            "key-name",
            "password_file",
            "hash",
            "value",
            "pem",
            "",
        ] {
            assert!(secret(name).is_none(), "{name}");
        }
        for name in [
            "tokens",
            "max_tokens",
            "maxTokens",
            "max-token",
            "MAX_TOKENS",
            "total_tokens",
        ] {
            assert!(
                secret(name).is_some_and(|kind| !kind.hides_text("512")),
                "{name}"
            );
        }
    }
}
