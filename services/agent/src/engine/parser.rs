//! Reads a model's reply: `Thought:` text, then `Action:` name with `Args:` object, `Actions:` with an array of several, or
//! `Final Answer:` text.
//!
//! One parser for streamed and whole replies: fed piece by piece it gives out thought and answer text as
//! soon as it is certain, and any cutting of a text gives the same result. Labels count only at the start
//! of a line. The first complete `Args` object, or array, ends the reply: what a model invents after it (an
//! observation, an answer) is never read. Never asks a model, never judges whether a tool exists.

mod calls;
mod label;
mod name;
mod object;
mod text;

use serde_json::{Map, Value};
use tg_schemas::limits;

use self::calls::{Misread, read_calls};
use self::label::{Head, Label, Stars, classify_label};
use self::name::{MAX_NAME, clean_name};
use self::object::{ObjectScanner, Scan};
use self::text::Text;
use super::bounds::MAX_CALLS;

/// What the model decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// To use a tool.
    Action {
        /// Name as written, without quotes.
        name: String,
        /// Arguments; empty if none were given.
        arguments: Map<String, Value>,
    },
    /// To use several tools side by side, by name with their arguments: two at least.
    Actions(Vec<(String, Map<String, Value>)>),
    /// To answer.
    Answer(String),
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The thought, trimmed; may be empty.
    pub thought: String,
    /// The decision, or why none can be read.
    pub choice: Result<Choice, ParseError>,
}

/// Why a reply cannot be read. Its text is shown to the model, so that it can do better.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No label at all.
    #[error("the reply has neither an Action nor a Final Answer")]
    Unlabelled,
    /// A thought that leads nowhere.
    #[error("the Thought is not followed by an Action or a Final Answer")]
    OnlyThought,
    /// `Action:` and nothing.
    #[error("the Action names no tool")]
    NoName,
    /// Not a name.
    #[error("the name after Action is too long")]
    LongName,
    /// `Args:` and no object.
    #[error("Args is not a JSON object")]
    NoObject,
    /// The object never ends.
    #[error("the JSON object of Args is not complete")]
    Incomplete,
    /// Not JSON.
    #[error("the JSON object of Args cannot be read: {0}")]
    Json(String),
    /// `Actions:` and no array.
    #[error("Actions is not a JSON array of objects with a name and arguments")]
    NoArray,
    /// The array never ends.
    #[error("the JSON array of Actions is not complete")]
    IncompleteArray,
    /// It has nothing in it.
    #[error("Actions names no tool")]
    NoCall,
    /// It has too much in it.
    #[error("Actions has more than {MAX_CALLS} calls")]
    ManyCalls,
    /// `Final Answer:` and nothing.
    #[error("the Final Answer is empty")]
    NoAnswer,
    /// More than [`limits::AGENT_REPLY`] bytes.
    #[error("the reply is too long")]
    TooLong,
}

/// Text that became certain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// More of the thought.
    pub thought: String,
    /// The thought is over with this.
    pub thought_ended: bool,
    /// More of the answer.
    pub answer: String,
}

impl Progress {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.thought.is_empty() && !self.thought_ended && self.answer.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first label.
    Prelude,
    Thought,
    /// After `Action:`, until the end of the line with the name.
    Name,
    /// After the name, before `Args:`.
    AfterName,
    /// After `Args:`, before the object.
    ArgsStart,
    /// Inside the object.
    Args,
    /// After `Actions:`, before the array.
    CallsStart,
    /// Inside the array.
    Calls,
    Answer,
    /// Nothing more counts.
    Done,
}

/// The parser. Feed it with [`ReplyParser::push`], end with [`ReplyParser::finish`].
#[derive(Debug)]
pub struct ReplyParser {
    state: State,
    /// Beginning of the current line while it may still be a label.
    head: String,
    at_head: bool,
    skip_line: bool,
    stars: Stars,
    fenced: bool,
    length: usize,
    prelude: Text,
    thought: Text,
    answer: Text,
    name: String,
    object: ObjectScanner,
    arguments: Map<String, Value>,
    calls: Vec<(String, Map<String, Value>)>,
    fault: Option<ParseError>,
    progress: Progress,
}

impl Default for ReplyParser {
    fn default() -> Self {
        Self {
            state: State::Prelude,
            head: String::new(),
            at_head: true,
            skip_line: false,
            stars: 0,
            fenced: false,
            length: 0,
            prelude: Text::default(),
            thought: Text::default(),
            answer: Text::default(),
            name: String::new(),
            object: ObjectScanner::default(),
            arguments: Map::new(),
            calls: Vec::new(),
            fault: None,
            progress: Progress::default(),
        }
    }
}

impl ReplyParser {
    /// Reads a whole reply.
    pub fn parse(text: &str) -> Parsed {
        let mut parser = Self::default();
        parser.push(text);
        parser.finish().1
    }

    /// For a reply that is an answer from its first word on.
    pub fn of_answer() -> Self {
        Self {
            state: State::Answer,
            at_head: false,
            ..Self::default()
        }
    }

    /// Takes the next piece and returns what became certain.
    pub fn push(&mut self, piece: &str) -> Progress {
        for c in piece.chars() {
            if self.state == State::Done {
                break;
            }
            self.length += c.len_utf8();
            if self.length > limits::AGENT_REPLY {
                self.fail(ParseError::TooLong);
                break;
            }
            self.take(c);
        }
        std::mem::take(&mut self.progress)
    }

    /// Whether nothing that follows can change the result.
    pub fn is_complete(&self) -> bool {
        self.state == State::Done
    }

    /// Whether some thought or answer was given out.
    pub fn has_shown(&self) -> bool {
        !self.thought.shown().is_empty() || !self.answer.shown().is_empty()
    }

    /// The text is over.
    pub fn finish(mut self) -> (Progress, Parsed) {
        let open = std::mem::take(&mut self.head);
        match self.state {
            State::Prelude | State::Thought | State::Answer => self.plain(&open),
            State::Name if open.is_empty() && self.name.is_empty() => self.fail(ParseError::NoName),
            _ => {}
        }
        let choice = match (self.fault.take(), self.state) {
            (Some(fault), _) => Err(fault),
            (None, State::Prelude) => Err(ParseError::Unlabelled),
            (None, State::Thought) => Err(ParseError::OnlyThought),
            (None, State::Args) => Err(ParseError::Incomplete),
            (None, State::CallsStart) => Err(ParseError::NoArray),
            (None, State::Calls) => Err(ParseError::IncompleteArray),
            (None, State::Done) if self.calls.len() > 1 => {
                Ok(Choice::Actions(std::mem::take(&mut self.calls)))
            }
            (None, State::Answer) if self.answer.shown().is_empty() => Err(ParseError::NoAnswer),
            (None, State::Answer) => Ok(Choice::Answer(self.answer.shown().to_owned())),
            (None, State::Name | State::AfterName | State::ArgsStart | State::Done) => {
                match clean_name(&self.name) {
                    "" => Err(ParseError::NoName),
                    name => Ok(Choice::Action {
                        name: name.to_owned(),
                        arguments: std::mem::take(&mut self.arguments),
                    }),
                }
            }
        };
        let parsed = Parsed {
            thought: self.thought.shown().to_owned(),
            choice,
        };
        (self.progress, parsed)
    }

    fn take(&mut self, c: char) {
        if self.stars > 0 {
            if c == '*' {
                self.stars -= 1;
                return;
            }
            self.stars = 0;
        }
        if self.skip_line {
            self.skip_line = c != '\n';
            self.at_head = !self.skip_line;
            return;
        }
        match self.state {
            State::Prelude | State::Thought | State::AfterName => self.take_in_lines(c),
            State::Answer if self.fenced => self.take_in_lines(c),
            State::Answer => self.plain(c.encode_utf8(&mut [0; 4])),
            State::Name => self.take_in_name(c),
            State::ArgsStart => self.take_before_object(c),
            State::Args => self.take_in_object(c),
            State::CallsStart => self.take_before_array(c),
            State::Calls => self.take_in_array(c),
            State::Done => {}
        }
    }

    fn take_in_lines(&mut self, c: char) {
        if !self.at_head {
            self.plain(c.encode_utf8(&mut [0; 4]));
            self.at_head = c == '\n';
            return;
        }
        self.head.push(c);
        match self.classify() {
            Head::Undecided => {}
            Head::Plain => {
                let head = std::mem::take(&mut self.head);
                self.at_head = c == '\n';
                self.line_of_text(&head);
            }
            Head::Fence => {
                let head = std::mem::take(&mut self.head);
                self.at_head = c == '\n';
                self.fence(&head);
            }
            Head::Label(label, stars) => {
                self.head.clear();
                self.at_head = false;
                self.stars = stars;
                self.label(label);
            }
        }
    }

    /// Looks at the beginning of a line.
    fn classify(&self) -> Head {
        let line = self.head.as_str();
        let body = line.trim_start_matches([' ', '\t']);
        if body.is_empty() {
            return Head::Undecided;
        }
        if line.ends_with('\n') {
            return if body.trim_end() == "```" && self.fences_count() {
                Head::Fence
            } else {
                Head::Plain
            };
        }
        if self.fences_count() && ("```".starts_with(body) || body.starts_with("```")) {
            let decided = body.len() > 3 && self.state != State::Answer;
            return if decided {
                Head::Fence
            } else {
                Head::Undecided
            };
        }
        if self.state == State::Answer {
            return Head::Plain;
        }
        if self.state == State::AfterName && body.starts_with('{') {
            return Head::Plain;
        }
        classify_label(body, |label| self.expects(label))
    }

    fn fences_count(&self) -> bool {
        match self.state {
            State::Prelude | State::AfterName => true,
            State::Answer => self.fenced,
            _ => false,
        }
    }

    fn expects(&self, label: Label) -> bool {
        match self.state {
            State::Prelude => matches!(
                label,
                Label::Thought | Label::Action | Label::Actions | Label::FinalAnswer
            ),
            State::Thought => {
                matches!(label, Label::Action | Label::Actions | Label::FinalAnswer)
            }
            State::AfterName => true,
            _ => false,
        }
    }

    fn label(&mut self, label: Label) {
        if self.state == State::AfterName && label != Label::Args {
            self.state = State::Done;
            return;
        }
        match label {
            Label::Thought => self.state = State::Thought,
            Label::Args => self.state = State::ArgsStart,
            Label::Action | Label::Actions | Label::FinalAnswer | Label::Observation => {
                if self.state == State::Prelude {
                    // Text without a label before the decision is its thought.
                    let unlabelled = std::mem::take(&mut self.prelude);
                    self.state = State::Thought;
                    self.plain(unlabelled.shown());
                }
                self.progress.thought_ended |= !self.thought.shown().is_empty();
                self.state = match label {
                    Label::Action => State::Name,
                    Label::Actions => State::CallsStart,
                    _ => State::Answer,
                };
            }
        }
    }

    /// A line, or its beginning, that is no label.
    fn line_of_text(&mut self, head: &str) {
        if self.state != State::AfterName {
            self.plain(head);
            return;
        }
        // The label of the object was left out; other remarks are passed over.
        if head.trim_start().starts_with('{') {
            self.state = State::Args;
            for c in head.trim_start().chars() {
                self.take_in_object(c);
            }
        } else if !head.ends_with('\n') {
            self.skip_line = true;
        }
    }

    fn fence(&mut self, head: &str) {
        match self.state {
            State::Answer => self
                .answer
                .push_if_followed(head, &mut self.progress.answer),
            State::Prelude => {
                self.fenced = true;
                self.skip_line = !head.ends_with('\n');
            }
            _ => self.skip_line = !head.ends_with('\n'),
        }
    }

    fn plain(&mut self, text: &str) {
        match self.state {
            State::Prelude => self.prelude.push(text, &mut String::new()),
            State::Thought => self.thought.push(text, &mut self.progress.thought),
            State::Answer if self.at_fence(text) => {
                self.answer
                    .push_if_followed(text, &mut self.progress.answer);
            }
            State::Answer => self.answer.push(text, &mut self.progress.answer),
            _ => {}
        }
    }

    fn at_fence(&self, text: &str) -> bool {
        self.fenced && text.trim() == "```"
    }

    fn take_in_name(&mut self, c: char) {
        if c != '\n' {
            self.name.push(c);
            if self.name.len() > MAX_NAME {
                self.fail(ParseError::LongName);
            }
        } else if clean_name(&self.name).is_empty() {
            self.name.clear();
        } else {
            self.state = State::AfterName;
            self.at_head = true;
        }
    }

    fn take_before_object(&mut self, c: char) {
        match c {
            '{' => {
                self.state = State::Args;
                self.take_in_object(c);
            }
            '`' => self.skip_line = true,
            c if c.is_whitespace() => {}
            _ => self.fail(ParseError::NoObject),
        }
    }

    fn take_in_object(&mut self, c: char) {
        match self.object.push(c) {
            Scan::Open => {}
            Scan::Closed => match serde_json::from_slice(self.object.text().as_bytes()) {
                Ok(arguments) => {
                    self.arguments = arguments;
                    self.state = State::Done;
                }
                Err(error) => self.fail(ParseError::Json(error.to_string())),
            },
        }
    }

    fn take_before_array(&mut self, c: char) {
        match c {
            '[' => {
                self.state = State::Calls;
                self.take_in_array(c);
            }
            '`' => self.skip_line = true,
            c if c.is_whitespace() => {}
            _ => self.fail(ParseError::NoArray),
        }
    }

    fn take_in_array(&mut self, c: char) {
        match self.object.push(c) {
            Scan::Open => {}
            Scan::Closed => match read_calls(self.object.text()) {
                Ok(mut calls) => {
                    if calls.len() == 1 {
                        // One is one, however it is written.
                        (self.name, self.arguments) = calls.remove(0);
                    }
                    self.calls = calls;
                    self.state = State::Done;
                }
                Err(fault) => self.fail(match fault {
                    Misread::NoArray => ParseError::NoArray,
                    Misread::NoCall => ParseError::NoCall,
                    Misread::Many => ParseError::ManyCalls,
                    Misread::NoName => ParseError::NoName,
                    Misread::LongName => ParseError::LongName,
                }),
            },
        }
    }

    fn fail(&mut self, fault: ParseError) {
        self.fault.get_or_insert(fault);
        self.state = State::Done;
    }
}

#[cfg(test)]
mod tests;
