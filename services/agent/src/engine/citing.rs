//! Citations of a run: what its tools cite gets numbers of the whole run, and the answer numbers of its own. Pure.

use tg_citations::{Citer, is_refusal, renumbered, sentences};
use tg_schemas::msg::Citation;

/// Citations that a run keeps; what its tools cite beyond has no number.
const MOST: usize = 200;

/// What a tool said, with numbers of the run: those that are known already, and new ones behind them. The citations
/// that are new are returned with it.
pub fn of_run(text: &str, cites: &[Citation], known: &[Citation]) -> (String, Vec<Citation>) {
    let mut new: Vec<Citation> = Vec::new();
    let mut numbers: Vec<(i64, usize)> = Vec::with_capacity(cites.len());
    for one in cites {
        let place = place(one, known, &new);
        let place = place.or_else(|| {
            let place = known.len() + new.len();
            (place < MOST).then(|| {
                new.push(Citation {
                    n: number(place),
                    ..one.clone()
                });
                place
            })
        });
        numbers.extend(place.map(|place| (one.n, place + 1)));
    }
    let in_run = |of_tool: usize| {
        let of_tool = i64::try_from(of_tool).ok()?;
        let found = numbers.iter().find(|(number, _)| *number == of_tool);
        found.map(|(_, number)| *number)
    };
    (renumbered(text, in_run), new)
}

/// The number of the run that names the same as a citation of a tool; `None`: none does.
pub fn number_in_run(one: &Citation, known: &[Citation], new: &[Citation]) -> Option<usize> {
    place(one, known, new).map(|place| place + 1)
}

fn place(one: &Citation, known: &[Citation], new: &[Citation]) -> Option<usize> {
    let same = |other: &Citation| {
        (&other.document, &other.chunk, &other.text) == (&one.document, &one.chunk, &one.text)
    };
    known.iter().chain(new).position(same)
}

/// Puts the numbers of an answer right while it comes, or of a whole one. An answer of a run that knows no citations,
/// and one that is JSON, stay as they are.
pub struct Answer<'a> {
    known: &'a [Citation],
    citer: Option<Citer>,
    begun: bool,
    text: String,
}

/// What became of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cited {
    /// The text, its numbers from 1 in the order of their use.
    pub text: String,
    /// What they name.
    pub citations: Vec<Citation>,
    /// The answer is that there is none.
    pub refused: bool,
}

impl<'a> Answer<'a> {
    /// An answer of a run that knows these citations.
    pub fn new(known: &'a [Citation]) -> Self {
        let texts: Vec<&str> = known.iter().map(|one| one.text.as_str()).collect();
        Self {
            known,
            citer: (!known.is_empty()).then(|| Citer::new(&texts)),
            begun: false,
            text: String::new(),
        }
    }

    /// A whole answer.
    pub fn whole(known: &'a [Citation], text: &str) -> Cited {
        let mut answer = Self::new(known);
        answer.push(text);
        answer.finish().1
    }

    /// Takes a piece; returns what can be passed on.
    pub fn push(&mut self, piece: &str) -> String {
        if !self.begun {
            let first = piece.trim_start().chars().next();
            self.begun = first.is_some();
            if first == Some('{') {
                self.citer = None;
            }
        }
        let piece = match &mut self.citer {
            Some(citer) => citer.push(piece),
            None => piece.to_owned(),
        };
        self.text.push_str(&piece);
        piece
    }

    /// The rest of the text, and the whole.
    pub fn finish(mut self) -> (String, Cited) {
        let rest = self.citer.as_mut().map_or_else(String::new, Citer::finish);
        self.text.push_str(&rest);
        let (citations, refused) = match &self.citer {
            Some(citer) => {
                let cited = citer.cited().iter().enumerate();
                let citations = cited.map(|(at, cited)| Citation {
                    n: number(at),
                    ..self.known[cited.passage].clone()
                });
                (citations.collect(), citer.refused())
            }
            None => {
                let all = sentences(&self.text);
                let refused = all.iter().all(|sentence| is_refusal(&sentence.text));
                let refused = refused && !all.is_empty();
                (Vec::new(), refused)
            }
        };
        let text = self.text;
        let cited = Cited {
            text,
            citations,
            refused,
        };
        (rest, cited)
    }
}

fn number(place: usize) -> i64 {
    i64::try_from(place + 1).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn citation(n: i64, chunk: &str, text: &str) -> Citation {
        Citation {
            n,
            chunk: chunk.into(),
            text: text.into(),
            ..Citation::default()
        }
    }

    #[test]
    fn two_tools_never_share_a_number_for_two_things() {
        let (text, first) = of_run(
            "One [1]. Two [2].",
            &[citation(1, "a", "A"), citation(2, "b", "B")],
            &[],
        );
        assert_eq!(text, "One [1]. Two [2].");
        let (text, second) = of_run(
            "Three [1], and two again [2]. None [3].",
            &[citation(1, "c", "C"), citation(2, "b", "B")],
            &first,
        );
        assert_eq!(text, "Three [3], and two again [2]. None.");
        assert_eq!(second, [citation(3, "c", "C")]);
    }

    #[test]
    fn an_answer_has_numbers_of_its_own() {
        let known = [
            citation(1, "a", "The bridge was built in 1429."),
            citation(2, "b", "Ham has 3000 people."),
        ];
        let cited = Answer::whole(&known, "It has people [2]. The bridge was built in 1429.");
        assert_eq!(
            cited.text,
            "It has people [1]. The bridge was built in 1429 [2]."
        );
        assert_eq!(
            cited.citations,
            [
                citation(1, "b", "Ham has 3000 people."),
                citation(2, "a", "The bridge was built in 1429.")
            ]
        );
        assert!(!cited.refused);
        let mut answer = Answer::new(&known);
        let mut text = String::new();
        for piece in [
            "It has ",
            "people [",
            "2]",
            ". The bridge was built in 1429.",
        ] {
            text += &answer.push(piece);
        }
        let (rest, whole) = answer.finish();
        assert_eq!((text + &rest, whole.clone()), (whole.text, cited));
    }

    #[test]
    fn a_refusal_is_one_and_what_cites_nothing_stays_as_it_is() {
        let known = [citation(1, "a", "The passages answer this question.")];
        let refused = Answer::whole(&known, "The passages do not answer this question [1].");
        assert_eq!(refused.text, "The passages do not answer this question.");
        assert!(refused.refused && refused.citations.is_empty());
        let none = Answer::whole(&[], "I found nothing that answers this.");
        assert!(none.refused);
        let list = Answer::whole(&[], "6 * 7 = 42 [7]");
        assert_eq!(
            (list.text.as_str(), list.refused),
            ("6 * 7 = 42 [7]", false)
        );
        let json = Answer::whole(&known, "{\"a\": [1, 2]}");
        assert_eq!(json.text, "{\"a\": [1, 2]}");
    }
}
