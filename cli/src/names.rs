//! One flag for one thing, in every command. What the reference's commands call it, and ours did before, stays as an alias.

use std::collections::BTreeSet;

use clap::{Arg, Command};

use crate::completing::Listed;

/// A thing that many commands take.
#[derive(Debug, Clone, Copy)]
pub struct Thing {
    /// Its flag.
    pub flag: &'static str,
    /// Its letter, where nothing else of a command has it.
    pub letter: Option<char>,
    /// What its ids are listed by, for a shell that completes them.
    pub listed: Option<Listed>,
    /// Other names of the flag; whether one means this thing depends on the command for `id` and `identifier`.
    pub also: &'static [&'static str],
}

/// A flow.
pub const FLOW: Thing = Thing {
    flag: "flow-id",
    letter: Some('f'),
    listed: Some(Listed::Flows),
    also: &["flow"],
};
/// A collection.
pub const COLLECTION: Thing = Thing {
    flag: "collection",
    letter: Some('C'),
    listed: Some(Listed::Collections),
    also: &[],
};
/// A document of the library.
pub const DOCUMENT: Thing = Thing {
    flag: "document-id",
    letter: Some('d'),
    listed: Some(Listed::Documents),
    also: &["identifier", "id"],
};
/// A document on its way through a flow.
pub const PROCESSING: Thing = Thing {
    flag: "processing-id",
    letter: None,
    listed: Some(Listed::Processings),
    also: &["id"],
};
/// A workspace that a command is about.
pub const WORKSPACE: Thing = Thing {
    flag: "workspace",
    letter: Some('w'),
    listed: None,
    also: &["workspace-id"],
};
/// A question in words.
pub const QUESTION: Thing = Thing {
    flag: "question",
    letter: Some('q'),
    listed: None,
    also: &["query"],
};

/// Commands of which `--id` or `--identifier` is a document.
const OF_DOCUMENTS: [&str; 3] = ["add", "add-library-document", "remove-library-document"];
/// Commands of which `--id` is a processing.
const OF_PROCESSING: [&str; 2] = ["start-library-processing", "stop-library-processing"];

/// What a flag of a command names, if it is one of these things.
pub fn thing(command: &str, flag: &str) -> Option<Thing> {
    Some(match flag {
        "flow" | "flow-id" => FLOW,
        "collection" => COLLECTION,
        "document-id" => DOCUMENT,
        "id" | "identifier" if OF_DOCUMENTS.contains(&command) => DOCUMENT,
        "id" | "processing-id" if OF_PROCESSING.contains(&command) => PROCESSING,
        "workspace" | "workspace-id" => WORKSPACE,
        "question" => QUESTION,
        _ => return None,
    })
}

/// The command with its flags under their one name; all others still work.
pub fn unified(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let mut letters: BTreeSet<char> = command.get_arguments().flat_map(letters_of).collect();
    let mut flags: BTreeSet<String> = command.get_arguments().flat_map(flags_of).collect();
    command
        .mut_args(|arg| {
            let Some(flag) = arg.get_long().map(str::to_owned) else {
                return arg;
            };
            match thing(&name, &flag) {
                Some(thing) => renamed(arg, &flag, thing, &mut letters, &mut flags),
                None => arg,
            }
        })
        .mut_args(|arg| match place(&name, &arg) {
            Some(listed) => arg.add(listed.candidates()),
            None => arg,
        })
}

/// What a shell offers for an argument that takes the place of a flag.
fn place(command: &str, arg: &Arg) -> Option<Listed> {
    if let Some(flag) = arg.get_long() {
        return thing(command, flag)?.listed;
    }
    let value = arg.get_value_names()?.first()?.as_str();
    match (command, value) {
        ("start-flow", _) => None,
        ("stop-flow" | "why", "ID" | "FLOW") => Some(Listed::Flows),
        ("set-collection", _) => None,
        (_, "COLLECTION") => Some(Listed::Collections),
        (_, "DOCUMENT-ID") | ("remove-library-document", "IRI") => Some(Listed::Documents),
        ("process-status" | "stop-library-processing", "ID") => Some(Listed::Processings),
        _ => None,
    }
}

fn renamed(
    mut arg: Arg,
    before: &str,
    thing: Thing,
    letters: &mut BTreeSet<char>,
    flags: &mut BTreeSet<String>,
) -> Arg {
    let free = flags.insert(thing.flag.to_owned()) || is_own(&arg, thing.flag);
    if before != thing.flag && free {
        arg = arg.long(thing.flag);
    }
    for also in thing.also {
        let is_new = flags.insert((*also).to_owned()) || (*also == before && free);
        if is_new && arg.get_long() != Some(also) {
            arg = arg.alias(*also);
        }
    }
    match (thing.letter, arg.get_short()) {
        (Some(letter), before) if before != Some(letter) && letters.insert(letter) => {
            arg = arg.short(letter);
            match before {
                Some(before) => arg.short_alias(before),
                None => arg,
            }
        }
        _ => arg,
    }
}

fn is_own(arg: &Arg, flag: &str) -> bool {
    flags_of(arg).iter().any(|own| own == flag)
}

fn flags_of(arg: &Arg) -> Vec<String> {
    let also = arg.get_all_aliases().unwrap_or_default();
    let all = arg.get_long().into_iter().chain(also);
    all.map(str::to_owned).collect()
}

fn letters_of(arg: &Arg) -> Vec<char> {
    let also = arg.get_all_short_aliases().unwrap_or_default();
    arg.get_short().into_iter().chain(also).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ALL;

    #[test]
    fn each_thing_has_one_name_in_every_command() {
        let mut seen = 0;
        for row in ALL {
            let command = row.standalone();
            for arg in command.get_arguments() {
                let flags = flags_of(arg);
                let Some(thing) = flags.iter().find_map(|flag| thing(row.name, flag)) else {
                    continue;
                };
                seen += 1;
                assert_eq!(
                    arg.get_long(),
                    Some(thing.flag),
                    "tg {}: {flags:?}",
                    row.name
                );
                let others = command
                    .get_arguments()
                    .filter(|other| other.get_id() != arg.get_id());
                let elsewhere: Vec<char> = others.flat_map(letters_of).collect();
                let Some(letter) = thing.letter.filter(|letter| !elsewhere.contains(letter)) else {
                    continue;
                };
                assert_eq!(
                    arg.get_short(),
                    Some(letter),
                    "tg {} --{}",
                    row.name,
                    thing.flag
                );
            }
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn help_names_no_flag_as_its_own_alias_and_shows_what_is_required() {
        for row in ALL {
            let command = row.standalone();
            for arg in command.get_arguments() {
                let own = arg.get_long().unwrap_or_default();
                let also = arg.get_visible_aliases().unwrap_or_default();
                assert!(!also.contains(&own), "tg {} --{own}", row.name);
            }
        }
        let made = ALL.iter().find(|row| row.name == "create-workspace");
        let help = made
            .expect("a command")
            .standalone()
            .render_help()
            .to_string();
        assert!(
            help.contains("tg-create-workspace [OPTIONS] <ID>"),
            "{help}"
        );
        assert!(help.contains("Same as <ID>, given as a flag"), "{help}");
    }

    #[test]
    fn the_letter_of_a_thing_means_nothing_else_where_the_thing_is_taken() {
        for row in ALL {
            let command = row.standalone();
            for thing in [FLOW, COLLECTION, QUESTION] {
                let taken = command
                    .get_arguments()
                    .any(|arg| arg.get_long() == Some(thing.flag));
                let mut others = command
                    .get_arguments()
                    .filter(|arg| arg.get_long() != Some(thing.flag));
                let other = others.find(|arg| {
                    thing
                        .letter
                        .is_some_and(|letter| letters_of(arg).contains(&letter))
                });
                assert!(!taken || other.is_none(), "tg {}: {other:?}", row.name);
            }
        }
    }
}
