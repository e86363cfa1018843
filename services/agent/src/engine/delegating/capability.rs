//! What an agent says that it is good at, and how well that fits a task: by words that both have.

use std::collections::BTreeSet;

use serde::Deserialize;

/// Part of a score that the name of a capability decides, where it has tags; they decide the rest.
const OF_NAME: f64 = 0.7;
/// Words that say nothing of a task.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in",
    "is", "it", "me", "my", "of", "on", "or", "please", "that", "the", "this", "to", "use", "want",
    "we", "what", "with", "you",
];
/// Letters that are left at least where an `s` is cut off.
const STEM: usize = 3;

/// One thing that an agent is good at.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Capability {
    /// What.
    pub name: String,
    /// Words that go with it.
    #[serde(default)]
    pub tags: Vec<String>,
    /// How good, above 0 and up to 1.
    #[serde(default = "full")]
    pub strength: f64,
}

fn full() -> f64 {
    1.0
}

/// How well an agent fits a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The agent.
    pub agent: String,
    /// Above 0, with four decimals.
    pub score: f64,
    /// The capability that fits best.
    pub capability: String,
}

/// Capabilities as a model reads them.
pub fn format(capabilities: &[Capability]) -> String {
    let told = capabilities.iter().map(|capability| {
        let mut text = capability.name.clone();
        if !capability.tags.is_empty() {
            text.push_str(&format!(" [{}]", capability.tags.join(", ")));
        }
        if (capability.strength - 1.0).abs() > f64::EPSILON {
            let number = format!("{:.2}", capability.strength);
            let number = number.trim_end_matches('0').trim_end_matches('.');
            text.push_str(&format!(" ({number})"));
        }
        text
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The agents that fit a task at all, the best first.
pub fn matches<'a>(
    agents: impl IntoIterator<Item = (&'a str, &'a [Capability])>,
    task: &str,
) -> Vec<Match> {
    let wanted = words(task);
    let fits = agents.into_iter().filter_map(|(agent, capabilities)| {
        let mut best: Option<Match> = None;
        for capability in capabilities {
            let score = (capability.strength * raw(capability, &wanted) * 1e4).round() / 1e4;
            if score > best.as_ref().map_or(0.0, |best| best.score) {
                best = Some(Match {
                    agent: agent.to_owned(),
                    score,
                    capability: capability.name.clone(),
                });
            }
        }
        best
    });
    let mut fits: Vec<Match> = fits.collect();
    fits.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then_with(|| one.agent.cmp(&other.agent))
    });
    fits
}

fn raw(capability: &Capability, wanted: &BTreeSet<String>) -> f64 {
    let name = words(&capability.name);
    let named = share(
        name.iter().filter(|word| wanted.contains(*word)),
        name.len(),
    );
    if capability.tags.is_empty() {
        return named;
    }
    let tags: BTreeSet<BTreeSet<String>> = capability.tags.iter().map(|tag| words(tag)).collect();
    let known = tags.iter();
    let known = known.filter(|tag| !tag.is_empty() && tag.is_subset(wanted));
    OF_NAME * named + (1.0 - OF_NAME) * share(known, tags.len())
}

fn share<T>(some: impl Iterator<Item = T>, all: usize) -> f64 {
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    match all {
        0 => 0.0,
        all => count(some.count()) / count(all),
    }
}

/// The words of a text that say something.
fn words(text: &str) -> BTreeSet<String> {
    let text = text.to_lowercase();
    let is_part =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '#' | '.');
    let words = text
        .split(|c| !is_part(c))
        .map(|word| word.trim_matches('.'));
    let words = words.filter(|word| word.len() >= 2 && !STOP_WORDS.contains(word));
    let stems = words.map(|word| match word.strip_suffix('s') {
        Some(stem) if stem.len() >= STEM => stem.to_owned(),
        _ => word.to_owned(),
    });
    stems.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability(name: &str, tags: &[&str], strength: f64) -> Capability {
        Capability {
            name: name.into(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            strength,
        }
    }

    /// Line 111.
    #[test]
    fn line_111_the_capability_that_fits_best_names_the_agent() {
        let reviewer = [capability("code-review", &["golang"], 0.8)];
        let generator = [capability("code-generation", &[], 1.0)];
        let agents = || [("gen", &generator[..]), ("rev", &reviewer[..])];
        let found = matches(agents(), "review golang code");
        let expected = Match {
            agent: "rev".into(),
            score: 0.8,
            capability: "code-review".into(),
        };
        assert_eq!(found[0], expected);
        assert_eq!((found[1].agent.as_str(), found[1].score), ("gen", 0.5));
        assert_eq!(matches(agents(), "bake me a cake, please"), []);
        let both = [generator[0].clone(), reviewer[0].clone()];
        let found = matches([("one", &both[..])], "review golang code");
        assert_eq!(
            (found.len(), &found[0]),
            (
                1,
                &Match {
                    agent: "one".into(),
                    ..expected
                }
            )
        );
    }

    #[test]
    fn who_fits_alike_comes_in_order_and_who_says_nothing_never() {
        let same = [capability("tests", &[], 1.0)];
        let agents = [("b", &same[..]), ("a", &same[..]), ("none", &[][..])];
        let found = matches(agents, "Write a TEST.");
        let ids: Vec<&str> = found.iter().map(|one| one.agent.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        let third = [capability("one two three", &[], 1.0)];
        assert_eq!(matches([("x", &third[..])], "two")[0].score, 0.3333);
        let sharp = [capability("c#", &["node.js"], 1.0)];
        assert_eq!(
            matches([("x", &sharp[..])], "use C# and Node.js.")[0].score,
            1.0
        );
    }

    /// Line 112.
    #[test]
    fn line_112_a_list_reads_as_the_contract_has_it() {
        let list = [
            capability("code-generation", &["golang", "python"], 0.9),
            capability("code-review", &["golang"], 0.8),
        ];
        assert_eq!(
            format(&list),
            "code-generation [golang, python] (0.9), code-review [golang] (0.8)"
        );
        assert_eq!(format(&[]), "");
        assert_eq!(format(&[capability("x", &[], 1.0)]), "x");
        assert_eq!(format(&[capability("x", &[], 0.25)]), "x (0.25)");
    }
}
