//! Ids of messages for listeners. Whoever knows the id of a question and where its answer goes can answer it, so the ids of
//! one message from outside follow from each other for nobody but the service.

use ring::hmac;

/// The id of the message of this number, for this listener, among those that a message from outside led to. `question` is the
/// id of the message from outside. The gateway and this service alone know it, as listeners are not sent it, and at least 74 bits
/// of it are random. So it is the key, and another process that takes the message from outside up gives the same ids.
/// It may give them in another order: an id that one listener had then is not that of another one.
pub fn of_message(question: &str, number: u64, listener: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, question.as_bytes());
    // The number has a fixed length: no two pairs are the same text.
    let of = [number.to_be_bytes().as_slice(), listener.as_bytes()].concat();
    let tag = hmac::sign(&key, &of);
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
                .map(|number| of_message(question, number, "greeter"))
                .collect()
        };
        let (one, other) = (of("a"), of("b"));
        assert_eq!((one.len(), &one), (100, &of("a")));
        assert!(one.is_disjoint(&other));
    }

    #[test]
    fn an_id_is_of_one_listener_alone() {
        let one = of_message("a", 1, "greeter");
        assert_ne!(one, of_message("a", 1, "shouter"));
        assert_ne!(one, of_message("a", 2, "greeter"));
    }
}
