//! Vectors of a batch by another model. One text that the model refuses holds nobody up: it is found among the others, asked
//! for alone, and reported.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tg_clients::embeddings;
use tg_mesh::Mesh;
use tg_schemas::{Error, ErrorCode, Topic};

use crate::store::reembed::Batch;

/// How long the vectors of a batch may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Times that a text is asked for alone before it counts as refused.
const ALONE: usize = 3;
/// Refused texts of a batch after which what was done of it is kept first.
const REFUSED: usize = 16;
/// Longest reason that is kept, in characters.
const REASON: usize = 300;

/// Who makes vectors.
pub(super) trait Makes: Sync {
    /// Vectors of texts, all at once.
    fn make(&self, texts: Vec<String>)
    -> impl Future<Output = Result<Vec<Vec<f32>>, Error>> + Send;
}

/// The embeddings service behind a topic.
pub(super) struct Service<'a> {
    pub(super) mesh: &'a Mesh,
    pub(super) topic: &'a Topic,
    pub(super) model: &'a str,
}

impl Makes for Service<'_> {
    async fn make(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Error> {
        embeddings::embed_as(self.mesh, self.topic, texts, self.model, TIMEOUT).await
    }
}

/// What became of the texts of a batch, as far as it was looked at.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// A vector for each text; an empty one where it is refused.
    pub(super) vectors: Vec<Vec<f32>>,
    /// Numbers of points whose texts are refused, and why.
    pub(super) refused: Vec<(u32, String)>,
}

/// Makes them; a batch with many refused texts becomes as short as what was looked at.
///
/// # Errors
/// What is wrong with the service, and not with a text.
pub(super) async fn make(makes: &impl Makes, batch: &mut Batch) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    // From the front: what was looked at has no gaps.
    let mut open = vec![(0, batch.points.len())];
    let mut works = false;
    while let Some((from, to)) = open.pop() {
        if from == to {
            continue;
        }
        let texts = || batch.points[from..to].iter().map(|(_, text)| text.clone());
        let error = match makes.make(texts().collect()).await {
            Ok(vectors) => {
                outcome.vectors.extend(vectors);
                continue;
            }
            Err(error) => error,
        };
        let many = to - from > 1;
        // So many may take the model too long; whoever asks for another text then waits behind them.
        let too_many = many && error.code() == ErrorCode::Timeout;
        if !too_many {
            if !may_be_a_texts(&error) || !(works || does_work(makes).await) {
                return Err(error);
            }
            works = true;
        }
        if many {
            let middle = from.midpoint(to);
            open.extend([(middle, to), (from, middle)]);
            continue;
        }
        match alone(makes, texts().collect()).await? {
            Ok(vectors) => outcome.vectors.extend(vectors),
            Err(why) => {
                let why = why.message.chars().take(REASON).collect();
                outcome.vectors.push(Vec::new());
                outcome.refused.push((batch.points[from].0, why));
            }
        }
        if outcome.refused.len() == REFUSED {
            break;
        }
    }
    shorten(batch, outcome.vectors.len());
    Ok(outcome)
}

/// Asks for one text, several times. The outer error: nobody makes vectors now, of whatever text.
async fn alone(
    makes: &impl Makes,
    text: Vec<String>,
) -> Result<Result<Vec<Vec<f32>>, Error>, Error> {
    let mut tried = 0;
    loop {
        match makes.make(text.clone()).await {
            Ok(vectors) => return Ok(Ok(vectors)),
            Err(error) if !may_be_a_texts(&error) || !does_work(makes).await => return Err(error),
            Err(error) => {
                tried += 1;
                if tried == ALONE {
                    return Ok(Err(error));
                }
            }
        }
    }
}

/// Whether vectors are made of another text, one that nobody has asked for before: none that is remembered.
async fn does_work(makes: &impl Makes) -> bool {
    let some = RandomState::new().hash_one(TIMEOUT);
    makes.make(vec![format!("lamp {some}")]).await.is_ok()
}

/// Whether an error may be because of a text. Others are of the service, the model, or the moment.
fn may_be_a_texts(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::BadRequest
            | ErrorCode::TooLarge
            | ErrorCode::Provider
            | ErrorCode::Internal
            | ErrorCode::Timeout
    )
}

/// Leaves of a batch what was looked at.
fn shorten(batch: &mut Batch, looked_at: usize) {
    if looked_at == batch.points.len() {
        return;
    }
    batch.points.truncate(looked_at);
    // What is tried again does not move the number up to which others were looked at.
    if batch.last > batch.after
        && let Some((last, _)) = batch.points.last()
    {
        batch.last = *last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use parking_lot::Mutex;

    /// Refuses texts with these words in them, and everything when it is out of order.
    #[derive(Default)]
    struct Played {
        refuses: Vec<&'static str>,
        down: bool,
        /// Texts that it makes in time; 0: any number.
        in_time: usize,
        asked: Mutex<usize>,
        /// Sizes of what it was asked.
        sizes: Mutex<Vec<usize>>,
    }

    impl Makes for Played {
        async fn make(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Error> {
            *self.asked.lock() += 1;
            self.sizes.lock().push(texts.len());
            if self.in_time > 0 && texts.len() > self.in_time {
                return Err(Error::new(ErrorCode::Timeout, "took too long"));
            }
            if self.down {
                return Err(Error::new(ErrorCode::Provider, "out of order"));
            }
            let bad = |text: &String| self.refuses.iter().any(|word| text.contains(word));
            if texts.iter().any(bad) {
                return Err(Error::new(ErrorCode::TooLarge, "texts: too long"));
            }
            Ok(texts.iter().map(|text| vec![text.len() as f32]).collect())
        }
    }

    fn batch(count: u32) -> Batch {
        Batch {
            space: 1,
            after: 9,
            points: (10..10 + count).map(|n| (n, format!("t{n}."))).collect(),
            last: 9 + count,
        }
    }

    #[tokio::test]
    async fn what_is_refused_is_found_among_the_others() {
        let played = Played {
            refuses: vec!["t13.", "t99."],
            ..Played::default()
        };
        let mut all = batch(100);
        let made = make(&played, &mut all).await.unwrap();
        assert_eq!((made.vectors.len(), all.last), (100, 109));
        let numbers: Vec<u32> = made.refused.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [13, 99]);
        assert!(made.refused.iter().all(|(_, why)| why == "texts: too long"));
        let empty = |at: usize| made.vectors[at].is_empty();
        assert!(empty(3) && empty(89) && !empty(2) && !empty(90));
        assert!(*played.asked.lock() < 60, "{}", played.asked.lock());
    }

    #[tokio::test]
    async fn a_model_that_is_out_of_order_refuses_nothing() {
        let played = Played {
            down: true,
            ..Played::default()
        };
        let told = make(&played, &mut batch(100)).await.unwrap_err();
        assert_eq!(told.message, "out of order");
        assert_eq!(*played.asked.lock(), 2);
    }

    /// Who is busy with a batch that took too long would not make another text either.
    #[tokio::test]
    async fn a_batch_that_took_too_long_is_halved_at_once() {
        let played = Played {
            in_time: 25,
            ..Played::default()
        };
        let made = make(&played, &mut batch(100)).await.unwrap();
        assert_eq!((made.vectors.len(), made.refused.len()), (100, 0));
        assert_eq!(*played.sizes.lock(), [100, 50, 25, 25, 50, 25, 25]);
    }

    #[tokio::test]
    async fn many_refusals_are_kept_before_more_is_asked() {
        let played = Played {
            refuses: vec!["t"],
            ..Played::default()
        };
        let mut all = batch(100);
        let made = make(&played, &mut all).await.unwrap();
        assert_eq!((made.vectors.len(), made.refused.len()), (REFUSED, REFUSED));
        assert_eq!((all.points.len(), all.last), (REFUSED, 9 + REFUSED as u32));
        // What is tried again moves nothing.
        let mut again = Batch {
            last: 9,
            ..batch(100)
        };
        make(&played, &mut again).await.unwrap();
        assert_eq!((again.points.len(), again.last), (REFUSED, 9));
        let none = make(&played, &mut batch(0)).await.unwrap();
        assert_eq!(none, Outcome::default());
    }
}
