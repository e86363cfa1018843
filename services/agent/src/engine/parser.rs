//! Reads a model's reply: `Thought:` text, then `Action:` name with `Args:` object, `Actions:` with an array of several, or
//! `Final Answer:` text.
//!
//! One parser for streamed and whole replies: fed piece by piece it gives out thought and answer text as
//! soon as it is certain, and any cutting of a text gives the same result. Labels count only at the start
//! of a line. The first complete `Args` object, or array, ends the reply: what a model invents after it (an
//! observation, an answer) is never read. What the model thinks is never read either: where only the end of that is marked, all
//! before it was drafts. A reply that is nothing but calls of tools, as JSON, is read as them. Never asks a model, never judges
//! whether a tool exists.

mod calls;
mod label;
mod name;
mod outcome;
mod text;

use serde_json::{Map, Value};
use tg_replies::{CLOSES, Part, Scan, Scanner, Thinking};
use tg_schemas::limits;

use self::calls::{Called, Misread, read_calls, written};
use self::label::{Head, Label, Stars, classify_label, is_answer_line};
use self::name::{MAX_NAME, clean_name, is_answer, is_none};
pub use self::outcome::{Choice, ParseError, Parsed, Progress};
use self::text::Text;

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
    thinking: Thinking,
    /// Characters of the mark that ends a thought, seen so far.
    closing: usize,
    /// The asker knows that the thought is over.
    thought_told: bool,
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
    object: Scanner,
    arguments: Map<String, Value>,
    calls: Vec<(String, Map<String, Value>)>,
    fault: Option<ParseError>,
    progress: Progress,
}

impl Default for ReplyParser {
    fn default() -> Self {
        Self {
            state: State::Prelude,
            thinking: Thinking::default(),
            closing: 0,
            thought_told: false,
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
            object: Scanner::default(),
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
        let parts = self.thinking.push(piece.to_owned());
        self.read(parts);
        std::mem::take(&mut self.progress)
    }

    fn read(&mut self, parts: Vec<Part>) {
        for part in parts {
            // What is thought is shown by whoever hears it apart, and never read.
            if let Part::Text(text) = part {
                text.chars().for_each(|c| self.read_char(c));
            }
        }
    }

    fn read_char(&mut self, c: char) {
        let is_text = match self.state {
            State::Answer => true,
            State::Args | State::Calls => self.object.in_string(),
            _ => false,
        };
        if !is_text && CLOSES[self.closing..].starts_with(c) {
            self.closing += c.len_utf8();
            if self.closing == CLOSES.len() {
                self.closing = 0;
                self.begin_again();
            }
            return;
        }
        self.flush();
        match !is_text && CLOSES.starts_with(c) {
            true => self.closing = c.len_utf8(),
            false => self.count(c),
        }
    }

    /// What looked like the mark that ends a thought is none.
    fn flush(&mut self) {
        let seen = std::mem::take(&mut self.closing);
        CLOSES[..seen].chars().for_each(|c| self.count(c));
    }

    fn count(&mut self, c: char) {
        if self.state == State::Done {
            return;
        }
        self.length += c.len_utf8();
        match self.length > limits::AGENT_REPLY {
            true => self.fail(ParseError::TooLong),
            false => self.take(c),
        }
    }

    /// All that came was thought: what it drafts is not done.
    fn begin_again(&mut self) {
        // An answer that was given out stays one.
        if self.fault == Some(ParseError::TooLong) || !self.answer.shown().is_empty() {
            return;
        }
        let drafts = std::mem::take(&mut self.prelude);
        let open = std::mem::take(&mut self.head);
        self.think(drafts.shown());
        if self.state != State::AfterName {
            self.think(&open);
        }
        self.think("\n");
        self.state = State::Prelude;
        (self.at_head, self.skip_line, self.stars, self.fenced) = (true, false, 0, false);
        self.name.clear();
        self.object = Scanner::default();
        self.arguments = Map::new();
        self.calls.clear();
        self.fault = None;
    }

    /// More of the thought, unless it was said to be over.
    fn think(&mut self, text: &str) {
        if !self.thought_told {
            self.thought.push(text, &mut self.progress.thought);
        }
    }

    fn end_thought(&mut self) {
        if !self.thought.shown().is_empty() && !self.thought_told {
            self.progress.thought_ended = true;
            self.thought_told = true;
        }
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
        let parts = self.thinking.finish();
        self.read(parts);
        self.flush();
        let open = std::mem::take(&mut self.head);
        match self.state {
            State::Prelude | State::Thought | State::Answer => self.plain(&open),
            State::Name if open.is_empty() && self.name.is_empty() => self.fail(ParseError::NoName),
            _ => {}
        }
        self.read_written();
        let choice = match (self.fault.take(), self.state) {
            (Some(fault), _) => Err(fault),
            (None, State::Prelude) => Err(ParseError::Unlabelled),
            (None, State::Thought) => Err(ParseError::OnlyThought),
            (None, State::Args) => Err(ParseError::Incomplete),
            (None, State::CallsStart) => Err(ParseError::NoArray),
            (None, State::Calls) => Err(ParseError::IncompleteArray),
            (None, State::Done) if !self.answer.shown().is_empty() => {
                Ok(Choice::Answer(self.answer.shown().to_owned()))
            }
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
        let body = line.trim_start_matches([' ', '\t', '\u{3000}']);
        if body.is_empty() {
            return Head::Undecided;
        }
        if line.ends_with('\n') {
            if self.expects(Label::FinalAnswer) && is_answer_line(body) {
                return Head::Label(Label::FinalAnswer, 0);
            }
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
        let name = clean_name(&self.name);
        let answers = match label {
            Label::FinalAnswer => is_none(name) || is_answer(name),
            Label::Args => is_answer(name),
            _ => false,
        };
        match self.state {
            // The name says that no tool is meant.
            State::AfterName if answers => {
                self.name.clear();
                self.state = State::Answer;
                return;
            }
            State::AfterName if label != Label::Args => {
                self.state = State::Done;
                return;
            }
            _ => {}
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
                self.end_thought();
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
            State::Prelude if self.at_fence(text) => {}
            State::Prelude => self.prelude.push(text, &mut String::new()),
            State::Thought => self.think(text),
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
        let is_named = !clean_name(&self.name).is_empty();
        match c {
            // The arguments stand on the same line.
            '{' if is_named => {
                self.state = State::Args;
                self.take_in_object(c);
            }
            // A call as JSON has its name within.
            '{' | '[' if !is_named => {
                self.name.clear();
                self.state = State::Calls;
                self.take_in_array(c);
            }
            '\n' if is_named && !self.name.trim_start().starts_with("```") => {
                self.state = State::AfterName;
                self.at_head = true;
            }
            '\n' => self.name.clear(),
            c => {
                self.name.push(c);
                if self.name.len() > MAX_NAME {
                    self.fail(ParseError::LongName);
                }
            }
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
            Scan::Closed => match tg_replies::object(self.object.text()) {
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
                Ok(Called::Tools(calls)) => self.call(calls),
                Ok(Called::Answer(answer)) => self.answered(&answer),
                Err(fault) => self.misread(fault),
            },
        }
    }

    /// The answer stands where a call does.
    fn answered(&mut self, answer: &str) {
        self.answer.push(answer, &mut self.progress.answer);
        self.state = State::Done;
    }

    fn call(&mut self, mut calls: Vec<calls::Call>) {
        if calls.len() == 1 {
            // One is one, however it is written.
            (self.name, self.arguments) = calls.remove(0);
        }
        self.calls = calls;
        self.state = State::Done;
    }

    fn misread(&mut self, fault: Misread) {
        self.fail(match fault {
            Misread::NoArray => ParseError::NoArray,
            Misread::NoCall => ParseError::NoCall,
            Misread::Many => ParseError::ManyCalls,
            Misread::NoName => ParseError::NoName,
            Misread::LongName => ParseError::LongName,
        });
    }

    /// A reply without a decision may be calls as text, behind a mark or alone.
    fn read_written(&mut self) {
        let (text, is_thought) = match self.state {
            State::Prelude if self.fault.is_none() => (self.prelude.shown(), false),
            State::Thought => (self.thought.shown(), true),
            _ => return,
        };
        let Some(written) = written(text, is_thought) else {
            return;
        };
        let thought = written.thought.to_owned();
        match written.called {
            Ok(Called::Tools(calls)) => self.call(calls),
            Ok(Called::Answer(answer)) => self.answered(&answer),
            Err(fault) => self.misread(fault),
        }
        self.think(&thought);
        self.end_thought();
    }

    fn fail(&mut self, fault: ParseError) {
        self.fault.get_or_insert(fault);
        self.state = State::Done;
    }
}

#[cfg(test)]
mod tests;
