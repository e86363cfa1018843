//! Rendering templates: bounded work, undefined values are empty, nothing is escaped, no other template
//! or file can be reached.

mod dialect;
mod filters;
mod value;

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde_json::Map;
use tg_schemas::limits;

pub(crate) use self::value::of_terms;

/// Longest template source.
const SOURCE: usize = 256 << 10;
/// Instructions one rendering may take.
const FUEL: u64 = 500_000;

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The source is not a template.
    #[error("line {line}: {why}")]
    Syntax {
        /// Line in the source, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The values do not fit the template.
    #[error("cannot be rendered: {0}")]
    Render(String),
    /// Source, work or text is beyond the bounds.
    #[error("is too large or takes too long to render")]
    TooLarge,
}

/// A set of templates by name.
pub struct Engine {
    environment: Environment<'static>,
}

impl Default for Engine {
    fn default() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
        if let Ok(syntax) = syntax {
            environment.set_syntax(syntax);
        }
        environment.set_formatter(|out, state, value| {
            let shown = if value.is_none() {
                &Value::UNDEFINED
            } else {
                value
            };
            minijinja::escape_formatter(out, state, shown)
        });
        filters::install(&mut environment);
        Self { environment }
    }
}

impl Engine {
    /// Adds a template. The error names the line.
    ///
    /// # Errors
    /// [`TemplateError::TooLarge`] for a source that is, [`TemplateError::Syntax`] with the line.
    pub fn add(&mut self, name: &str, source: &str) -> Result<(), TemplateError> {
        if source.len() > SOURCE {
            return Err(TemplateError::TooLarge);
        }
        let translated = dialect::translate(source)
            .map_err(|(line, why)| TemplateError::Syntax { line, why })?;
        self.environment
            .add_template_owned(name.to_owned(), translated)
            .map_err(|error| TemplateError::Syntax {
                line: error.line().unwrap_or(1),
                why: detail(&error),
            })
    }

    /// Renders a template with values.
    ///
    /// # Errors
    /// [`TemplateError::TooLarge`] where the text or the work for it exceeds its bound, [`TemplateError::Render`] for what the template
    /// does with these values, and where there is none of the name.
    pub fn render(
        &self,
        name: &str,
        values: Map<String, serde_json::Value>,
    ) -> Result<String, TemplateError> {
        self.render_of(name, value::of_map(values))
    }

    /// The same with values as templates read them ([`of_terms`]).
    pub(crate) fn render_of(&self, name: &str, values: Value) -> Result<String, TemplateError> {
        let missing = |error: minijinja::Error| TemplateError::Render(detail(&error));
        let template = self.environment.get_template(name).map_err(missing)?;
        let mut text = Bounded(Vec::new());
        match template.render_captured_to(values, &mut text) {
            Ok(_) => String::from_utf8(text.0)
                .map_err(|_| TemplateError::Render("the text is not UTF-8".to_owned())),
            Err(error) => Err(match error.kind() {
                ErrorKind::OutOfFuel | ErrorKind::WriteFailure => TemplateError::TooLarge,
                _ => TemplateError::Render(detail(&error)),
            }),
        }
    }
}

fn detail(error: &minijinja::Error) -> String {
    let line = error
        .line()
        .map_or(String::new(), |line| format!("line {line}: "));
    match error.detail() {
        Some(detail) => format!("{line}{detail}"),
        None => format!("{line}{}", error.kind()),
    }
}

/// A buffer that refuses to grow beyond the bound.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > limits::PROMPT_TEXT {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
