//! Ids of messages for listeners. Whoever knows the id of a question and where its answer goes can answer it, so the ids of
//! one message from outside follow from each other for nobody but the service.

use ring::hmac;

/// The id of the message of this number among those that a message from outside led to. `question` is the id of the message
/// from outside: it is random, and known to the gateway and this service alone, as listeners are not sent it. So it is the
/// key, and another process that takes the message from outside up gives the same ids.
pub fn of_message(question: &str, number: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, question.as_bytes());
    let tag = hmac::sign(&key, &number.to_be_bytes());
    let tag: &[u8] = tag.as_ref();
    let mut id = [0_u8; 16];
    for (byte, of_tag) in id.iter_mut().zip(tag) {
        *byte = *of_tag;
    }
    uuid::Builder::from_random_bytes(id).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_made_again_and_are_all_different() {
        let of = |question: &str| -> BTreeSet<String> {
            (1..=100)
                .map(|number| of_message(question, number))
                .collect()
        };
        let (one, other) = (of("a"), of("b"));
        assert_eq!((one.len(), &one), (100, &of("a")));
        assert!(one.is_disjoint(&other));
    }
}
