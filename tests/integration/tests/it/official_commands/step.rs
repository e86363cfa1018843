//! One run of an official command, and what is to be seen of it.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tg_testkit::official::official_within;
use tg_testkit::process::{Output, tg_as};
use tokio::time::Instant;

/// How long a command may take, and how long until what was accepted is stored, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a command that never ends is looked at.
const LOOK: Duration = Duration::from_secs(4);

/// A command with its arguments, and what it is to print. In texts, `{name}` stands for a value of the story.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) line: &'static [&'static str],
    code: Option<i32>,
    says: &'static [&'static str],
    tells: &'static [&'static str],
    lacks: &'static [&'static str],
    exact: Option<&'static str>,
    until: bool,
    keeps: &'static [(&'static str, &'static str)],
    beside: &'static [&'static str],
}

/// The command ends with 0.
pub(super) const fn run(line: &'static [&'static str]) -> Step {
    Step {
        line,
        code: Some(0),
        says: &[],
        tells: &[],
        lacks: &[],
        exact: None,
        until: false,
        keeps: &[],
        beside: &[],
    }
}

impl Step {
    /// These are in its standard output.
    pub(super) const fn says(mut self, texts: &'static [&'static str]) -> Self {
        self.says = texts;
        self
    }

    /// These are in its standard error.
    pub(super) const fn tells(mut self, texts: &'static [&'static str]) -> Self {
        self.tells = texts;
        self
    }

    /// These are in neither.
    pub(super) const fn lacks(mut self, texts: &'static [&'static str]) -> Self {
        self.lacks = texts;
        self
    }

    /// Its standard output is this and nothing else, but for blank space around it.
    pub(super) const fn exactly(mut self, text: &'static str) -> Self {
        self.exact = Some(text);
        self
    }

    /// It prints nothing.
    pub(super) const fn silent(self) -> Self {
        self.exactly("")
    }

    /// It ends with this code.
    pub(super) const fn exits(mut self, code: i32) -> Self {
        self.code = Some(code);
        self
    }

    /// It does not end by itself.
    pub(super) const fn never_ends(mut self) -> Self {
        self.code = None;
        self
    }

    /// It is run again until it is so: it shows what was accepted and is stored a little later.
    pub(super) const fn until(mut self) -> Self {
        self.until = true;
        self
    }

    /// What stands at these places of its JSON are values of the story from here on.
    pub(super) const fn keeps(mut self, places: &'static [(&'static str, &'static str)]) -> Self {
        self.keeps = places;
        self
    }

    /// Our own command with these arguments says the same.
    pub(super) const fn beside(mut self, args: &'static [&'static str]) -> Self {
        self.beside = args;
        self
    }

    fn check(&self, output: &Output, values: &Values) -> Result<()> {
        ensure!(
            output.code == self.code,
            "exit code {:?}, not {:?}",
            output.code,
            self.code
        );
        for text in self.says.iter().map(|text| values.fill(text)) {
            ensure!(output.stdout.contains(&text), "does not say {text:?}");
        }
        for text in self.tells.iter().map(|text| values.fill(text)) {
            ensure!(output.stderr.contains(&text), "does not tell {text:?}");
        }
        for text in self.lacks.iter().map(|text| values.fill(text)) {
            let said = output.stdout.contains(&text) || output.stderr.contains(&text);
            ensure!(!said, "says {text:?}");
        }
        if let Some(text) = self.exact.map(|text| values.fill(text)) {
            ensure!(output.stdout.trim() == text, "does not say just {text:?}");
        }
        Ok(())
    }

    /// Runs it, again and again if it is to become so.
    pub(super) async fn take(&self, url: &str, key: &str, values: &mut Values) -> Result<()> {
        let line: Vec<String> = self.line.iter().map(|text| values.fill(text)).collect();
        let args: Vec<&str> = line.iter().skip(1).map(String::as_str).collect();
        let command = line.first().context("a command")?;
        let end = Instant::now() + TIMEOUT;
        let output = loop {
            let patience = if self.code.is_some() { TIMEOUT } else { LOOK };
            let output = official_within(url, key, command, &args, patience).await?;
            match self.check(&output, values) {
                Ok(()) => break output,
                Err(_) if self.until && Instant::now() < end => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(why) => bail!(
                    "{}: {why}\n--- stdout\n{}\n--- stderr\n{}",
                    line.join(" "),
                    output.stdout,
                    output.stderr
                ),
            }
        };
        if !self.beside.is_empty() {
            self.check_own(url, key, values).await?;
        }
        for (name, pointer) in self.keeps {
            let shown: Value = serde_json::from_str(&output.stdout)?;
            let value = shown.pointer(pointer).and_then(Value::as_str);
            values.set(
                name,
                value.with_context(|| format!("{pointer} of {shown}"))?,
            );
        }
        Ok(())
    }

    async fn check_own(&self, url: &str, key: &str, values: &Values) -> Result<()> {
        let line: Vec<String> = self.beside.iter().map(|text| values.fill(text)).collect();
        let args: Vec<&str> = line.iter().map(String::as_str).collect();
        let output = tg_as(url, key, "", &args).await?;
        for text in self.says.iter().map(|text| values.fill(text)) {
            if let Err(why) = output.expect(&text) {
                bail!("tg {}: {why}", line.join(" "));
            }
        }
        Ok(())
    }
}

/// What differs between runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(HashMap<&'static str, String>);

impl Values {
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.insert(name, value.into());
    }

    fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, value) in &self.0 {
            filled = filled.replace(&format!("{{{name}}}"), value);
        }
        filled
    }
}
