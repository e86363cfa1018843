//! `answers`: what each sentence of an answer rests on. The gateway judges it itself: it takes nothing but the texts
//! that whoever asks has. Keeps nothing.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use serde_json::json;
use tg_citations::Judged;
use tg_schemas::{Error, ErrorCode, limits};

use crate::ask::{Part, Parts};
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// Bytes of an answer.
const ANSWER: usize = 64 << 10;
/// Passages, and bytes of all their texts.
const PASSAGES: usize = 200;
const TEXTS: usize = limits::JUDGED_TEXTS;
/// Bytes that are looked through for all quotations together.
const LOOKED_THROUGH: usize = 64 << 20;

/// Answers an operation. The work is bounded by the request; it is done beside the runtime.
pub(crate) fn answer(operation: &str, body: &Body) -> Result<Parts, Error> {
    if operation != "judge-answer" {
        return Err(Error::new(ErrorCode::BadOperation, "unknown operation"));
    }
    let (answer, passages) = read(&Fields::new(body))?;
    let judge = async move {
        let judged = tokio::task::spawn_blocking(move || judge(&answer, &passages));
        match judged.await {
            Ok(Ok(body)) => Part::Body {
                body: body.into(),
                last: true,
                failed: false,
            },
            Ok(Err(fault)) => Part::Error(fault),
            Err(_) => Part::Error(Error::new(
                ErrorCode::Internal,
                "the answer could not be judged",
            )),
        }
    };
    Ok(stream::once(judge).boxed())
}

/// The answer, and what its numbers name.
fn read(fields: &Fields<'_>) -> Result<(String, BTreeMap<usize, Option<String>>), Error> {
    let answer = fields.required_text("answer")?;
    if answer.len() > ANSWER {
        return Err(fields.fault("answer", &format!("is larger than {ANSWER} bytes")));
    }
    let given = fields.objects("passages")?;
    if given.len() > PASSAGES {
        return Err(fields.fault("passages", &format!("are more than {PASSAGES}")));
    }
    let mut passages = BTreeMap::new();
    let mut bytes = 0;
    for one in given {
        let number = usize::try_from(one.integer_or("n", 0)?).unwrap_or(0);
        if number == 0 {
            return Err(one.fault("n", "must be a whole number from 1"));
        }
        let text = one.text("text")?;
        bytes += text.len();
        passages.insert(number, Some(text).filter(|text| !text.is_empty()));
    }
    if bytes > TEXTS {
        return Err(fields.fault("passages", &format!("are larger than {TEXTS} bytes")));
    }
    Ok((answer, passages))
}

fn judge(answer: &str, passages: &BTreeMap<usize, Option<String>>) -> Result<Body, Error> {
    if Judged::cost(answer, passages) > LOOKED_THROUGH {
        let text = "quotes more than can be looked up in so much text";
        return Err(fault("answer", text));
    }
    let judged = Judged::new(answer, passages);
    let sentences = json!(judged.sentences());
    Ok(Body::from_iter([("sentences".to_owned(), sentences)]))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn asked(body: Value) -> Result<Body, String> {
        let body = body.as_object().cloned().expect("an object");
        let read = read(&Fields::new(&body)).map_err(|error| error.message)?;
        judge(&read.0, &read.1).map_err(|error| error.message)
    }

    #[test]
    fn each_sentence_is_told_with_what_it_rests_on() {
        let told = asked(json!({
            "answer": "It is \"a lamp of red glass\" [1]. It hangs [2]. I like it.",
            "passages": [{"n": 1, "text": "A lamp of blue glass."}, {"n": 2}],
        }));
        assert_eq!(
            told.map(Value::Object),
            Ok(json!({"sentences": [
                {"text": "It is \"a lamp of red glass\".", "support": "misquoted", "by": [1],
                 "misquoted": ["a lamp of red glass"]},
                {"text": "It hangs.", "support": "passages", "by": [2]},
                {"text": "I like it.", "support": "nothing", "by": []},
            ]}))
        );
    }

    #[test]
    fn what_is_too_much_is_refused_by_its_field() {
        let refused = |body: Value| asked(body).expect_err("refused");
        let passage = |size: usize| json!({"n": 1, "text": "x".repeat(size)});
        for (body, why) in [
            (json!({}), "answer: is required"),
            (
                json!({"answer": "a".repeat(ANSWER + 1)}),
                "answer: is larger than 65536 bytes",
            ),
            (
                json!({"answer": "a", "passages": vec![passage(1); PASSAGES + 1]}),
                "passages: are more than 200",
            ),
            (json!({"answer": "a", "passages": [{"n": 0}]}), "n: must be"),
            (
                json!({"answer": "a", "passages": [passage(TEXTS), passage(1)]}),
                "passages: are larger than",
            ),
            (
                json!({"answer": "\"a b c\" ".repeat(100) + "[1].", "passages": [passage(TEXTS)]}),
                "answer: quotes more",
            ),
            // Nor behind a mark that never closes, nor by a number that stands there again and again.
            (
                json!({"answer": "« x.\n".to_owned() + &"\"a b c\" ".repeat(100) + "[1][1][1].",
                    "passages": [passage(TEXTS)]}),
                "answer: quotes more",
            ),
        ] {
            let told = refused(body);
            assert!(told.contains(why), "{told}");
        }
    }
}
