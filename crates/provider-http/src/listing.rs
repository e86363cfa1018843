//! A server's list of models held against the model that is asked there, in a sentence. Pure.

use crate::outage::{Origin, Outage};

/// Models that are named at most.
const NAMED: usize = 8;

/// What asking a server for its models came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// Their names, in its order.
    Names(Vec<String>),
    /// It answers, but has no such list: the status that it says so with, if it does by one.
    Unlisted(Option<Outage>),
    /// It was not answered: why, and in the words of an error.
    Failed(Option<Outage>, String),
}

/// Whether a server answers and has its model: `Err` says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// With the address, for those who run the system.
    pub operators: Result<String, String>,
    /// Without it.
    pub clients: Result<String, String>,
}

impl Look {
    /// What is said of a server, which is called by what it does, such as `the model provider`.
    pub fn at(origin: &Origin, server: &str, listed: Listed) -> Self {
        let both = |good: bool, status: Option<Outage>, text: &str| {
            let told = |text: String| if good { Ok(text) } else { Err(text) };
            Self {
                operators: told(origin.for_clients(status, text, true)),
                clients: told(origin.for_clients(status, text, false)),
            }
        };
        match listed {
            Listed::Names(names) if has(&names, origin.model()) => {
                both(true, None, &format!("{server} answers and has the model"))
            }
            Listed::Names(names) => {
                let some = some(&names);
                both(
                    false,
                    None,
                    &format!("{server} does not list the model; it has {some}"),
                )
            }
            // A server that has no list is no worse for that.
            Listed::Unlisted(status) => both(
                true,
                status,
                &format!("{server} answers, but does not list its models"),
            ),
            Listed::Failed(outage, why) => Self {
                operators: Err(origin.for_operators(outage, &why)),
                clients: Err(origin.for_clients(outage, &why, false)),
            },
        }
    }

    /// The sentence for who may know the address, or for who may not.
    ///
    /// # Errors
    /// What is wrong.
    pub fn told(self, with_address: bool) -> Result<String, String> {
        match with_address {
            true => self.operators,
            false => self.clients,
        }
    }
}

/// Whether a list has a model: under its name, as the latest of its tags, or as a dated release of it.
fn has(names: &[String], wanted: &str) -> bool {
    names.iter().any(|name| {
        let rest = name.strip_prefix(wanted);
        rest.is_some_and(|rest| {
            let dated = rest.strip_prefix('-').is_some_and(|date| {
                date.len() >= 8 && date.chars().all(|c| c.is_ascii_digit() || c == '-')
            });
            rest.is_empty() || rest == ":latest" || dated
        })
    })
}

/// The first of the models.
fn some(all: &[String]) -> String {
    let mut names: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    if all.len() > NAMED {
        names.push("…");
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_model_is_listed_by_its_name_tag_or_date() {
        let models = list(&[
            "gpt-4.1-mini",
            "llama3.2:latest",
            "claude-sonnet-4-5-20250929",
        ]);
        for name in [
            "gpt-4.1-mini",
            "llama3.2",
            "llama3.2:latest",
            "claude-sonnet-4-5",
        ] {
            assert!(has(&models, name), "{name}");
        }
        for name in ["gpt-4.1", "gpt-4", "llama3", "claude", ""] {
            assert!(!has(&models, name), "{name}");
        }
    }

    #[test]
    fn few_models_are_named() {
        assert_eq!(some(&[]), "none");
        assert_eq!(some(&list(&["a", "b"])), "a, b");
        let many = some(&list(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]));
        assert_eq!(many, "a, b, c, d, e, f, g, h, …");
    }

    #[test]
    fn the_address_is_for_those_who_run_the_system() {
        let origin = Origin::new("http://user:secret@host/v1", "x.url", "m");
        let look = |listed| Look::at(&origin, "the server", listed);
        let absent = look(Listed::Names(list(&["a"])));
        let told = "the server does not list the model; it has a; set by x.url; model m";
        assert_eq!(absent.clone().told(false), Err(told.to_owned()));
        let told =
            "the server does not list the model; it has a (http://host/v1); set by x.url; model m";
        assert_eq!(absent.told(true), Err(told.to_owned()));
        assert!(look(Listed::Names(list(&["m:latest"]))).told(true).is_ok());
        let silent = look(Listed::Unlisted(Some(Outage::Refused(404))));
        let told =
            "the server answers, but does not list its models (HTTP 404); set by x.url; model m";
        assert_eq!(silent.told(false), Ok(told.to_owned()));
        let away = Listed::Failed(
            Some(Outage::Unreachable(Cause::Refused)),
            "is away".to_owned(),
        );
        let told = look(away);
        assert_eq!(
            told.clients,
            Err("is away (connection refused); set by x.url; model m".to_owned())
        );
        let text = told.operators.expect_err("away");
        assert!(text.starts_with("cannot reach http://host/v1 ("), "{text}");
    }
}
