//! What an answer reveals about a workspace that is not the asker's: pure.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::Serialize;

use super::body::Things;
use super::doors::{Gate, Trial, Way};
use super::probe::Answer;

/// What is wrong with a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leak {
    /// What needs a capability in the other workspace was not refused.
    NotRefused,
    /// The answer holds what only the other workspace has.
    Shown,
    /// A workspace or thing that is there is answered otherwise than one that is not.
    ExistenceTold,
    /// The time that the answer takes tells whether it is there.
    ExistenceTimed,
}

impl Leak {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotRefused => "not refused",
            Self::Shown => "shows what is in the other workspace",
            Self::ExistenceTold => "tells whether it is there",
            Self::ExistenceTimed => "tells by its time whether it is there",
        }
    }
}

/// Whether the other workspace was named, and must have been refused for it.
fn must_be_refused(trial: &Trial, named: bool) -> bool {
    let of_workspace = match &trial.way {
        // Operations of iam name a workspace or a user in many ways; what counts is what they tell and do.
        Way::Service(service, _) => service != "iam",
        Way::Auth(_) | Way::Page(_) => false,
        // Which capability it is depends on the kind; it is one of the other workspace whatever the kind.
        Way::Lines(_) | Way::Upgrade(..) => return named,
        _ => true,
    };
    named && of_workspace && matches!(trial.gate, Gate::Needs(_))
}

/// Judges a pair of answers: about what is there, and about what is not.
pub fn judge(
    trial: &Trial,
    named: bool,
    marker: &str,
    there: (&Things, &Answer),
    absent: (&Things, &Answer),
) -> Option<Leak> {
    if is_in(&there.1.text, marker) {
        return Some(Leak::Shown);
    }
    if must_be_refused(trial, named) && there.1.status != 403 {
        return Some(Leak::NotRefused);
    }
    let (there, absent) = (plain(there.0, there.1), plain(absent.0, absent.1));
    (there != absent).then_some(Leak::ExistenceTold)
}

/// Whether a text holds the marker, as it is or in base64, wherever it begins there.
pub fn is_in(text: &str, marker: &str) -> bool {
    let encoded = (0..3).map(|before| {
        let whole = STANDARD_NO_PAD.encode(format!("{}{marker}", "_".repeat(before)));
        // What of it depends on its neighbours is left out.
        whole[4..whole.len() - 4].to_owned()
    });
    text.contains(marker) || encoded.into_iter().any(|part| text.contains(&part))
}

/// An answer without what differs by itself: of a success that it is one, of an error what it says but for the names.
fn plain(things: &Things, answer: &Answer) -> (u16, Option<String>) {
    let said = answer.error.clone().map(|text| {
        let names = [
            &things.user,
            &things.username,
            &things.key,
            &things.upload,
            &things.run,
            &things.thread,
            &things.workspace,
            &things.name,
        ];
        let mut names: Vec<&String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names
            .into_iter()
            .fold(text, |text, name| text.replace(name.as_str(), "…"))
    });
    (answer.status, said)
}

/// The gap between the middle times of two series.
pub fn gap(there: &mut [Duration], absent: &mut [Duration]) -> Duration {
    let middle = |times: &mut [Duration]| {
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    let (there, absent) = (middle(there), middle(absent));
    there.abs_diff(absent)
}

/// A gap that is no larger tells nobody on the network anything: 2 ms, or half of what an answer takes.
pub fn bound(there: &mut [Duration], absent: &mut [Duration]) -> Duration {
    there.sort();
    absent.sort();
    let least = there.get(there.len() / 2).min(absent.get(absent.len() / 2));
    let least = least.copied().unwrap_or_default();
    (least / 2).max(Duration::from_millis(2))
}

/// Whether times are so far apart that somebody on the network could tell them from one another.
pub fn is_told(there: &mut [Duration], absent: &mut [Duration]) -> bool {
    !there.is_empty() && gap(there, absent) > bound(there, absent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Error;
    use crate::commands::iam::isolation::doors::Effect;

    fn things(name: &str) -> Things {
        Things {
            workspace: format!("w-{name}"),
            name: name.to_owned(),
            user: format!("u-{name}"),
            username: String::new(),
            key: format!("k-{name}"),
            upload: format!("l-{name}"),
            run: format!("r-{name}"),
            thread: format!("t-{name}"),
        }
    }

    fn said(status: u16, text: &str) -> Answer {
        Answer::of_rest(status, text.to_owned(), Duration::ZERO)
    }

    fn framed(ended: Result<(), (&str, &str)>) -> Answer {
        let ended = ended.map_err(|(kind, message)| Error::Service {
            kind: kind.to_owned(),
            message: message.to_owned(),
        });
        Answer::of_socket(String::new(), ended, Duration::ZERO).unwrap()
    }

    fn trial(service: &str) -> Trial {
        Trial {
            door: String::new(),
            operation: String::new(),
            effect: Effect::Read,
            gate: Gate::Needs("config:read".into()),
            way: Way::Service(service.into(), "get".into()),
            example: serde_json::Map::new(),
        }
    }

    #[test]
    fn each_fault_is_found() {
        let (b, none) = (things("b"), things("none"));
        let config = trial("config");
        let of = |trial: &Trial, named, there: Answer, absent: Answer| {
            judge(trial, named, "S3CRET-OF-B", (&b, &there), (&none, &absent))
        };
        let denied = || said(403, r#"{"error": "access denied"}"#);
        assert_eq!(of(&config, true, denied(), denied()), None);
        let shown = said(200, r#"{"values": ["S3CRET-OF-B"]}"#);
        assert_eq!(
            of(&config, true, shown.clone(), denied()),
            Some(Leak::Shown)
        );
        let marker = "marker-of-the-other-workspace";
        for before in ["", "a", "ab"] {
            let text = STANDARD_NO_PAD.encode(format!("{before}{marker}, and more"));
            assert!(is_in(&text, marker), "{before}");
        }
        assert!(!is_in("bWFya2Vy", marker));
        let empty = said(200, r#"{"values": []}"#);
        let found = of(&config, true, empty.clone(), empty.clone());
        assert_eq!(found, Some(Leak::NotRefused));
        // One's own workspace is not refused, and a name that is echoed tells nothing.
        assert_eq!(of(&config, false, empty.clone(), empty.clone()), None);
        let unknown =
            |name: &str| said(200, &format!(r#"{{"error": {{"message": "no {name}"}}}}"#));
        for one in ["k", "r", "t"] {
            let (there, never) = (format!("{one}-b"), format!("{one}-none"));
            assert_eq!(of(&config, false, unknown(&there), unknown(&never)), None);
        }
        let iam = trial("iam");
        let told = of(&iam, true, denied(), unknown("u-none"));
        assert_eq!(told, Some(Leak::ExistenceTold));
        assert_eq!(of(&iam, true, unknown("u-b"), unknown("u-none")), None);
    }

    #[test]
    fn frames_are_told_apart_by_their_errors() {
        let (b, none) = (things("b"), things("none"));
        let iam = trial("iam");
        let of = |there: &Answer, absent: &Answer| {
            judge(&iam, false, "S3CRET-OF-B", (&b, there), (&none, absent))
        };
        let no = |name: &str| framed(Err(("not-found", &format!("no {name}"))));
        assert_eq!(of(&no("u-b"), &no("u-none")), None);
        let told = Some(Leak::ExistenceTold);
        assert_eq!(of(&framed(Ok(())), &no("u-none")), told);
        assert_eq!(of(&no("u-b"), &framed(Ok(()))), told);
        let taken = framed(Err(("conflict", "no u-b")));
        assert_eq!(of(&taken, &no("u-none")), told, "the type alone tells");
        let other = framed(Err(("not-found", "gone")));
        assert_eq!(of(&other, &no("u-none")), told, "the text alone tells");
    }

    #[test]
    fn times_that_are_near_tell_nothing() {
        let times = |ms: [u64; 5]| ms.map(Duration::from_millis);
        assert!(!is_told(
            &mut times([1, 2, 1, 9, 1]),
            &mut times([2, 1, 1, 1, 2])
        ));
        assert!(!is_told(&mut times([50; 5]), &mut times([60; 5])));
        assert!(is_told(&mut times([9, 8, 9, 9, 8]), &mut times([1; 5])));
    }
}
