//! What a shell completes: commands and flags from the table, ids of what there is from the gateway.
//!
//! A shell asks at each press of a key, so nothing here takes longer than a second, and what goes wrong is silence.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use serde_json::{Value, json};
use tg_schemas::operations::{ALL, Object, Operation, Visit, read, visit, write};

use crate::args::{Options, Stored};
use crate::client::{Error, Http, Result};
use crate::fields::{list, text, texts};
use crate::interrupt::Interrupt;
use crate::profiles::Profiles;
use crate::registry;
use crate::target::{complete, variable};

/// The variable by which a shell asks; it holds the shell's name.
pub const ASKED_BY: &str = "TG_COMPLETE";
/// How long ids may take to come: with the start of the process and of the shell's script that is less than a second.
const WITHIN: Duration = Duration::from_millis(500);
/// Most ids that are offered.
const MOST: u32 = 500;

/// Things whose ids can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Flows that run.
    Flows,
    /// Collections of the workspace.
    Collections,
    /// Documents of the library.
    Documents,
    /// Documents on their way.
    Processings,
}

impl Listed {
    /// What clap asks for the ids of.
    pub fn candidates(self) -> ArgValueCandidates {
        ArgValueCandidates::new(move || self.offered(std::env::args_os().collect()))
    }

    fn offered(self, argv: Vec<OsString>) -> Vec<CompletionCandidate> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else {
            return Vec::new();
        };
        let asked = async { tokio::time::timeout(WITHIN, self.ids(&argv)).await };
        let ids = runtime.block_on(asked);
        // A look-up of a name that hangs must not hold up the shell.
        runtime.shutdown_background();
        let ids = ids.unwrap_or(Ok(Vec::new())).unwrap_or_default();
        let offered = ids.into_iter().filter(|(id, _)| is_plain(id));
        let offered = offered.map(|(id, title)| {
            let title = Some(title).filter(|title| !title.is_empty());
            CompletionCandidate::new(id).help(title.map(Into::into))
        });
        offered.collect()
    }

    /// Ids, with titles where there are any.
    async fn ids(self, argv: &[OsString]) -> Result<Vec<(String, String)>> {
        let options = complete(typed(argv), variable, Profiles::load)?;
        let http = Http::new(&options, Interrupt::never())?;
        let named = |records: &[Value], id: &str, title: &str| {
            let both = records.iter().map(|one| (text(one, id), text(one, title)));
            both.collect::<Vec<_>>()
        };
        Ok(match self {
            Self::Flows => {
                let reply = http
                    .service("flow", json!({"operation": "list-flows"}))
                    .await?;
                let ids = texts(&reply, "flow-ids").into_iter();
                ids.map(|id| (id, String::new())).collect()
            }
            Self::Collections => {
                let ask = json!({"operation": "list-collections", "limit": MOST});
                let reply = http.service("collection-management", ask).await?;
                named(list(&reply, "collections"), "collection", "name")
            }
            Self::Documents => {
                let ask = json!({"operation": "list-documents", "limit": MOST});
                let reply = http.service("librarian", ask).await?;
                named(list(&reply, "document-metadatas"), "id", "title")
            }
            Self::Processings => {
                let ask = json!({"operation": "list-processing", "limit": MOST});
                let reply = http.service("librarian", ask).await?;
                named(list(&reply, "processing-metadatas"), "id", "document-id")
            }
        })
    }
}

/// What clap asks for the names of operations.
pub fn operations() -> ArgValueCandidates {
    ArgValueCandidates::new(named)
}

fn named() -> Vec<CompletionCandidate> {
    let offered = ALL.iter().map(|meta| {
        let about = meta.summary;
        CompletionCandidate::new(meta.name).help(Some(about.into()))
    });
    offered.collect()
}

/// What clap asks for the fields of the operation on the line.
pub fn fields() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let argv: Vec<OsString> = std::env::args_os().collect();
        let offered = fields_on(&argv).into_iter().map(CompletionCandidate::new);
        offered.collect()
    })
}

/// The fields of the first operation on a line, each as `key=`.
fn fields_on(argv: &[OsString]) -> Vec<String> {
    let mut words = words(argv).iter().filter_map(|word| word.to_str());
    let meta = words.find_map(|word| ALL.iter().find(|meta| meta.name == word));
    let mut fields = Fields {
        of: meta.map_or("", |meta| meta.name),
        found: Vec::new(),
    };
    visit(&mut fields);
    fields.found
}

/// Finds the fields of one operation: those of a request that says nothing.
struct Fields {
    of: &'static str,
    found: Vec<String>,
}

impl Visit for Fields {
    fn visit<O: Operation>(&mut self) {
        if O::META.name != self.of {
            return;
        }
        let request = read::<O::Request>(&Object::new()).ok();
        let request = request.and_then(|request| write(&request).ok());
        let names = request.into_iter().flatten().map(|(name, _)| name);
        self.found.extend(names.map(|name| format!("{name}=")));
    }
}

/// Whether an id can be put onto a line as it is. Anybody who may write to a workspace chooses ids there, and most shells
/// quote nothing that is completed.
fn is_plain(id: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_.:/@+%=,".contains(c);
    !id.is_empty() && !id.starts_with('-') && id.chars().all(plain)
}

/// The options that stand on the line already.
fn typed(argv: &[OsString]) -> Options {
    let words: Vec<&str> = words(argv)
        .iter()
        .filter_map(|word| word.to_str())
        .collect();
    let said = |names: &[&str]| {
        let at = |name: &&str| {
            let place = words.iter().position(|word| word == name)?;
            words.get(place + 1).map(|word| (*word).to_owned())
        };
        let joined = |name: &&str| {
            let start = format!("{name}=");
            words
                .iter()
                .find_map(|word| word.strip_prefix(&start))
                .map(str::to_owned)
        };
        let found = names
            .iter()
            .find_map(|name| at(name).or_else(|| joined(name)));
        found.filter(|text| !text.is_empty())
    };
    Options {
        url: said(&["-u", "--api-url", "--url"]),
        token: said(&["-t", "--token"]),
        workspace: said(&["-w", "--workspace"]),
        ca_file: said(&["--ca-file"]).map(Into::into),
        stored: Stored::Use(said(&["--profile"])),
        timeout: WITHIN,
        ..Options::local()
    }
}

/// The words of the line that is completed.
fn words(argv: &[OsString]) -> &[OsString] {
    let begin = argv.iter().position(|word| word == "--");
    begin.map_or(&[], |begin| &argv[begin + 1..])
}

/// Answers a shell that asks what could come next.
pub fn answer(shell: &OsStr, argv: &[OsString]) -> ExitCode {
    let words = words(argv).to_vec();
    let shells = Shells::builtins();
    let Some(shell) = shell.to_str().and_then(|name| shells.completer(name)) else {
        return ExitCode::FAILURE;
    };
    let mut command = registry::called(words.first().map(OsString::as_os_str));
    command.build();
    let here = std::env::current_dir().ok();
    let mut told = Vec::new();
    let outcome = shell
        .write_complete(&mut command, words, here.as_deref(), &mut told)
        .and_then(|()| std::io::stdout().write_all(&told));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Bash cuts a line into words at colons, which ids of documents have, and puts what is offered in the place of the last
/// piece alone. So the pieces are put together before anything is asked for, and what stands on the line already is cut
/// off the answers. `COMP_WORDBREAKS` stays as it is: the completions of others go by it.
const BASH: &str = r#"_tg_glued() {
    local line=${COMP_LINE:0:COMP_POINT} words=() last=-1 apart i word
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${line#"${line%%[![:space:]]*}"}
        [[ $word == "$line" ]] && apart= || apart=1
        line=$word
        ((i < COMP_CWORD)) && word=${COMP_WORDS[i]}
        line=${line#"$word"}
        if [[ -z $apart && $last -ge 0 && ($word == :* || ${words[last]} == *:) ]]; then
            words[last]+=$word
        else
            words[++last]=$word
        fi
    done
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$last current=${words[last]}
    "$1" "$2" "$current" "$4"
    if [[ $COMP_WORDBREAKS == *:* && $current == *:* ]]; then
        for i in "${!COMPREPLY[@]}"; do
            COMPREPLY[i]=${COMPREPLY[i]#"${current%"${current##*:}"}"}
        done
    fi
}
"#;

/// What makes a shell ask for the commands of these names; it asks `program`.
///
/// # Errors
/// [`Error::Usage`] for a shell that is not known.
pub fn script(shell: &str, program: &str, names: &[String]) -> Result<Vec<u8>> {
    let shells = Shells::builtins();
    let known = shells.completer(shell);
    let known = known.ok_or_else(|| Error::Usage(format!("the shell {shell} is not known")))?;
    let mut text = Vec::new();
    for name in names {
        known.write_registration(ASKED_BY, name, name, program, &mut text)?;
    }
    if shell != "bash" {
        return Ok(text);
    }
    let asked = String::from_utf8_lossy(&text).replace("-F _clap_complete_", "-F _tg_complete_");
    let mut text = BASH.to_owned();
    for name in names {
        let name = name.replace('-', "_");
        text += &format!("_tg_complete_{name}() {{ _tg_glued _clap_complete_{name} \"$@\"; }}\n");
    }
    Ok((text + &asked).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_stands_on_the_line_counts() {
        let typed = typed(&argv("tg -- tg ask -u http://h:1 --workspace=acme -f"));
        assert_eq!(typed.url.as_deref(), Some("http://h:1"));
        assert_eq!(typed.workspace.as_deref(), Some("acme"));
        assert_eq!((typed.token, typed.stored), (None, Stored::Use(None)));
        assert!(words(&argv("tg ask")).is_empty());
    }

    #[test]
    fn operations_and_their_fields_come_from_their_list() {
        assert_eq!(named().len(), ALL.len());
        let asked = |line: &str| fields_on(&argv(line));
        let found = asked("tg -- tg call get-session name=ann ");
        for field in ["name=", "session_id=", "user_id="] {
            assert!(found.iter().any(|one| one == field), "{found:?}");
        }
        assert_eq!(asked("tg -- tg call nothing "), Vec::<String>::new());
    }

    #[test]
    fn only_ids_that_no_shell_reads_as_more_are_offered() {
        for fine in [
            "default",
            "urn:doc:1",
            "https://h.example/a%20b?".trim_end_matches('?'),
            "größe_2",
        ] {
            assert!(is_plain(fine), "{fine}");
        }
        for id in [
            "",
            "-rf",
            "a b",
            "urn:a;sh",
            "urn:a$(sh)",
            "a`sh`",
            "a|sh",
            "a\nb",
            "a*",
            "~root",
            "a\u{1b}[2J",
        ] {
            assert!(!is_plain(id), "{id:?}");
        }
    }

    #[test]
    fn a_gateway_that_is_away_is_silence() {
        let line = argv("tg -- tg ask -u http://127.0.0.1:9 -f ");
        for listed in [Listed::Flows, Listed::Documents] {
            let took = |_| {
                let began = std::time::Instant::now();
                assert!(listed.offered(line.clone()).is_empty());
                began.elapsed()
            };
            assert!((0..3).map(took).any(|took| took < Duration::from_secs(1)));
        }
    }

    #[test]
    fn a_gateway_that_never_answers_is_not_waited_for() {
        // Connections are taken up by the system and never answered.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let line = argv(&format!("tg -- tg ask -u http://127.0.0.1:{port} -f "));
        // The best of three: what else the machine does only adds.
        let took = |_| {
            let began = std::time::Instant::now();
            assert!(Listed::Flows.offered(line.clone()).is_empty());
            began.elapsed()
        };
        assert!((0..3).map(took).any(|took| took < Duration::from_secs(1)));
    }
}
