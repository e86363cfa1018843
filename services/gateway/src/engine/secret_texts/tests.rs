//! What is masked in texts, and what is not.

use std::time::Duration;

use tg_testkit::machine::worked_for;

use super::*;

fn seen(text: &str) -> String {
    without_secrets(text).unwrap_or_else(|| text.to_owned())
}

#[test]
fn secrets_are_masked_wherever_a_text_has_them() {
    for (text, expected) in [
        (
            "a_key=S3CRET b_token=S3CRET",
            "a_key=******** b_token=********",
        ),
        (
            "see a_key=S3CRET, b_token=S3CRET; ok",
            "see a_key=********, b_token=********; ok",
        ),
        ("PGPASSWORD=S3CRET psql -h db", "PGPASSWORD=********"),
        (
            "run with DBPassword = S3CRET now",
            "run with DBPassword = ******** now",
        ),
        (
            "SSH_PASSPHRASE: S3CRET S3CRET\nhost: h",
            "SSH_PASSPHRASE: ********\nhost: h",
        ),
        (
            r#"said {"api_key": "S3CRET", "x": 1} there"#,
            r#"said {"api_key": "********", "x": 1} there"#,
        ),
        (
            r#"said {\"api_key\": \"S3CRET\", \"x\": 1}"#,
            r#"said {\"api_key\": \"********\", \"x\": 1}"#,
        ),
        (
            r#"of {"name": "API_KEY", "value": "S3CRET"}"#,
            r#"of {"name": "API_KEY", "value": "********"}"#,
        ),
        (
            r#"of ["api_key", "S3CRET"]"#,
            r#"of ["api_key", "********"]"#,
        ),
        ("{'password': 'S3CRET'}", "{'password': '********'}"),
        (
            "send Authorization: Bearer S3CRET",
            "send Authorization: ********",
        ),
        (
            "curl -H 'X: y' -H \"Bearer S3CRET\"",
            "curl -H 'X: y' -H \"Bearer ********\"",
        ),
        (
            "the API key: S3CRET of ours",
            "the API key: ******** of ours",
        ),
        (
            "tool --api-key S3CRET --verbose",
            "tool --api-key ******** --verbose",
        ),
        (
            "tool --token=S3CRET --verbose",
            "tool --token=******** --verbose",
        ),
        (
            "at postgres://me:S3CRET@db:5432/x, ok",
            "at postgres://********@db:5432/x, ok",
        ),
        (
            "at postgres://me:S3/CRET@db/x",
            "at postgres://********@db/x",
        ),
        (
            "at https://h/a?x=1&key=S3CRET#e and on",
            "at https://h/a?x=1&key=********#e and on",
        ),
        (
            "Server=h;User Id=u;Password=S3CRET;Database=d",
            "Server=h;User Id=u;Password=********;Database=d",
        ),
        (
            "https://hooks.slack.com/services/T0/B0/S3CRET",
            "https://hooks.slack.com/services/********",
        ),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nS3CRET\n-----END RSA PRIVATE KEY-----\nb",
            "a\n-----BEGIN RSA PRIVATE KEY-----********-----END RSA PRIVATE KEY-----\nb",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\\nS3CRET",
            "-----BEGIN PRIVATE KEY-----********",
        ),
        ("ü sk-ant-S3CRETS3CRET0 ü", "ü ******** ü"),
        ("password: ü S3CRET", "password: ********"),
    ] {
        assert_eq!(seen(text), expected, "{text}");
        assert_eq!(seen(expected), expected, "twice: {text}");
    }
}

/// What is written as lists, objects and blocks, in texts that are no JSON.
#[test]
fn secrets_in_lists_objects_and_blocks_are_masked() {
    for (text, expected) in [
        (
            r#"of "api_keys": ["S3CRET", "S3CRET2"], "x": 1"#,
            r#"of "api_keys": ["********", "********"], "x": 1"#,
        ),
        (
            r#"of \"api_keys\": [\"S3CRET\", \"S3CRET2\"] x"#,
            r#"of \"api_keys\": [\"********\", \"********\"] x"#,
        ),
        (
            "api_keys: [S3CRET, S3CRET]\nhost: h",
            "api_keys: [********, ********]\nhost: h",
        ),
        (
            "with {'secrets': {'db': 'S3CRET', 'of': {'a': 'S3CRET'}}, 'x': 'y'}",
            "with {'secrets': {'db': '********', 'of': {'a': '********'}}, 'x': 'y'}",
        ),
        (
            "password: {value: S3CRET, tries: 3}\nhost: h",
            "password: {value: ********, tries: ********}\nhost: h",
        ),
        ("password: [S3CRET\nhost: h", "password: [********\nhost: h"),
        (
            "passwords: [\n  'S3CRET',\n  'S3CRET'\n]\nhost: h",
            "passwords: [\n  '********',\n  '********'\n]\nhost: h",
        ),
        (
            "password: |\n  S3CRET\n\n  S3CRET\nhost: h",
            "password: |\n  ********\nhost: h",
        ),
        (
            "a:\n  - token: >-\n      S3CRET\n      S3CRET\n    host: h",
            "a:\n  - token: >-\n      ********\n    host: h",
        ),
        (
            "private_key: |+2 # of ours\r\n  S3CRET\r\nhost: h",
            "private_key: |+2 # of ours\r\n  ********\r\nhost: h",
        ),
        (
            "api_keys:\n- S3CRET\n- 'S3CRET'\nhost: h",
            "api_keys:\n- ********\n- '********'\nhost: h",
        ),
        (
            "secrets:\n  db: S3CRET\n  of:\n    a: S3CRET\nhost: h",
            "secrets:\n  db: ********\n  of:\n    a: ********\nhost: h",
        ),
        (
            "password:\n  S3CRET\nhost: h",
            "password:\n  ********\nhost: h",
        ),
    ] {
        assert_eq!(seen(text), expected, "{text}");
        assert_eq!(seen(expected), expected, "twice: {text}");
    }
}

#[test]
fn secrets_under_names_in_small_letters_and_at_hosts_in_brackets_are_masked() {
    for (text, expected) in [
        ("apikey = s3cret", "apikey = ********"),
        (
            "the apikey = s3cret of ours",
            "the apikey = ******** of ours",
        ),
        ("secretkey = s3cret", "secretkey = ********"),
        ("sessiontoken: s3cret", "sessiontoken: ********"),
        ("accountkey=s3cret;x=y", "accountkey=********;x=y"),
        ("of ['apikey', 's3cret']", "of ['apikey', '********']"),
        (
            "at http://user:s3cret@[::1]/a and on",
            "at http://********@[::1]/a and on",
        ),
        (
            "at http://user:s3cret@[fe80::1%25eth0]:8080/a@b",
            "at http://********@[fe80::1%25eth0]:8080/a@b",
        ),
        (
            "(http://user:s3/cret@[::1]:80/a)",
            "(http://********@[::1]:80/a)",
        ),
        (
            "(http://user:12/34@[::1]:80/a)",
            "(http://********@[::1]:80/a)",
        ),
        (
            "redis://:s3cret@[2001:db8::1]:6379",
            "redis://********@[2001:db8::1]:6379",
        ),
        ("u=http://s3cret@[::1]?x=1", "u=http://********@[::1]?x=1"),
    ] {
        assert_eq!(seen(text), expected, "{text}");
        assert_eq!(seen(expected), expected, "twice: {text}");
    }
    for text in [
        "see http://[::1]/a@b for more",
        "see http://[::1]:8080/a@b for more",
        "monkey = banana",
        "maxtoken: 512",
    ] {
        assert_eq!(seen(text), text);
    }
}

#[test]
fn what_is_none_stays_to_the_letter() {
    for text in [
        "tokens: 512",
        "max_tokens=512",
        "max-tokens: 4,096",
        "token-cost: 3",
        "key: default",
        "key=default",
        "tokens: a few",
        "see token",
        "the token is in your profile",
        "the password must not be empty",
        "enter a password: it is yours",
        "Bearer authentication is required",
        "Basic knowledge of SQL",
        "see https://h:8080/a@b for more",
        r#"{"required": ["token", "name"]}"#,
        r#"{"token": null, "max_tokens": 512}"#,
        "mail me@example.org",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "primary_key=id",
        "a: b, c = d",
        "password: ********",
        "request:tg:agent:default",
        "urn:graph:retrieval",
        "token: null",
        "password=",
        "a://b://c://",
        "ü=ü: ü",
        "token: {type: string, description: who asks}",
        "token:\n  type: string\n  description: who asks",
        "tokens: [512, 1024]",
        "tokens:\n  - 512\n  - 1024",
        "password:\n\nIt is in your profile.",
        "a: |\n  b",
        "key: [a, b]",
    ] {
        assert_eq!(seen(text), text);
    }
}

/// Numbers drawn by lot, the same each time.
fn lot(seed: &mut u64) -> usize {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

#[test]
fn no_secret_is_left_and_masks_are_masked_to_themselves() {
    const SHAPES: [&str; 14] = [
        "api_key=%",
        "DBPassword=%",
        "\"token\": \"%\"",
        "{\"name\":\"API_KEY\",\"value\":\"%\"}",
        "Authorization: Bearer %",
        "Bearer %",
        "https://u:%@h/x",
        "https://h/?key=%",
        "--password %",
        "sk-proj-%",
        "ghp_%",
        "'secret': '%'",
        "-----BEGIN PRIVATE KEY-----%-----END PRIVATE KEY-----",
        "[\"api_key\", \"%\"]",
    ];
    const AROUND: [&str; 9] = [
        " ",
        "\n",
        " and ",
        ", ",
        "; ",
        " ü ",
        "\n\n",
        " tokens: 512 ",
        " (x) ",
    ];
    const LETTERS: &[u8] = b"abcdefghijkABCDEFGHIJK0123456789_-";
    let mut seed = 7;
    for _ in 0..20_000 {
        let mut text = String::new();
        let mut secrets = Vec::new();
        for _ in 0..1 + lot(&mut seed) % 4 {
            let letters = (0..14).map(|_| char::from(LETTERS[lot(&mut seed) % LETTERS.len()]));
            let secret = format!("Z9q{}", letters.collect::<String>());
            text += &SHAPES[lot(&mut seed) % SHAPES.len()].replace('%', &secret);
            text += AROUND[lot(&mut seed) % AROUND.len()];
            secrets.push(secret);
        }
        let shown = seen(&text);
        for secret in secrets {
            assert!(!shown.contains(&secret), "{secret} in {shown} of {text}");
        }
        assert_eq!(seen(&shown), shown, "{text}");
    }
}

#[test]
fn any_text_is_masked_to_what_stays() {
    const PARTS: [&str; 32] = [
        "[",
        "]",
        "{",
        "}",
        "- ",
        "|\n",
        "\n  ",
        "type: string",
        "=",
        ":",
        "\"",
        "'",
        "\\",
        " ",
        "\n",
        "password",
        "key",
        "api",
        "name",
        "value",
        "://",
        "@",
        "?",
        "&",
        ",",
        "--",
        "Bearer ",
        "ü",
        "S3CRET0",
        MASK,
        "-----BEGIN PRIVATE KEY-----",
        "[",
    ];
    let mut seed = 3;
    for _ in 0..20_000 {
        let parts = (0..lot(&mut seed) % 24).map(|_| PARTS[lot(&mut seed) % PARTS.len()]);
        let text: String = parts.collect();
        let mut shown = seen(&text);
        // What was hidden behind a secret may be told apart only then; it ends soon.
        for _ in 0..4 {
            shown = seen(&shown);
        }
        assert_eq!(seen(&shown), shown, "{text}");
    }
}

/// Four times the text may take about four times as long, on any machine, and not sixteen.
#[test]
fn long_texts_take_no_longer_than_their_length() {
    const SHORT: usize = 64 << 10;
    for part in [
        "a=",
        "password: ",
        "://",
        "a://b:c",
        ",a",
        "--",
        "tg_",
        "sk-",
        "\"key\":\"",
        "Bearer ",
        "&a",
        "-----BEGIN ",
        "x ",
        "password=a ",
        "password:[",
        "password:\n",
        "password:\n ",
        "password: |\n ",
        "password: [\n",
        "token:\n type: string\n",
        "password: {\"",
        "token:{type: string,",
        "tokens:{a: 1,",
        "token:\r",
        "tokens:\n a: 1\n",
        "tokens: {a: tokens: {b: 1}} ",
    ] {
        // Processor time: what else the machine does is not counted.
        let once = |bytes: usize| {
            let text = part.repeat(bytes / part.len());
            worked_for(|| drop(without_secrets(&text)))
        };
        // The best of three. Of long ones the first that is good is enough.
        let short = (0..3).map(|_| once(SHORT)).min().unwrap_or_default();
        let most = short * 9 + Duration::from_millis(200);
        let mut long = (0..3).map(|_| once(4 * SHORT));
        assert!(
            long.any(|long| long < most),
            "{part:?}: {short:?}, {most:?}"
        );
    }
}
