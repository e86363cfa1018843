//! What a page draws as text: its operators are followed as far as they place glyphs, everything else is passed over.

use std::collections::HashMap;
use std::rc::Rc;

use encoding_rs::{UTF_16BE, WINDOWS_1252};
use pdf_extract::content::{Content, Operation};
use pdf_extract::{Dictionary, Document, Object, ObjectId};

use super::fonts::{Font, Shown};
use super::objects::{Matrix, at, content, dictionary, get, inherited, name, number, numbers};
use super::words::{Glyph, Words};

/// How deep forms may stand in forms.
const DEEPEST: usize = 12;
/// Operators of one page, forms included.
const MOST: usize = 4_000_000;
/// How deep states may be kept, and marked content stand in such.
const STATES: usize = 512;
/// Characters of a text that is said in the place of glyphs. It stands where the first of them is, so a longer one would
/// lose its place: its glyphs are read.
const INSTEAD: usize = 16;
/// Fields of a page that are read.
const FIELDS: usize = 10_000;
/// A field is not shown: hidden, or on paper only.
const UNSEEN: i64 = 2 | 32;
/// A button is one to press, which has no state.
const PRESSED: i64 = 65_536;
/// Largest sign of a box to tick: a larger one would reach into the lines beside it.
const SIGN: f64 = 12.0;

const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// `first`, then `then`.
fn times(first: Matrix, then: Matrix) -> Matrix {
    let [a, b, c, d, e, f] = first;
    let [ta, tb, tc, td, te, tf] = then;
    [
        a * ta + b * tc,
        a * tb + b * td,
        c * ta + d * tc,
        c * tb + d * td,
        e * ta + f * tc + te,
        e * tb + f * td + tf,
    ]
}

fn shifted(matrix: Matrix, x: f64, y: f64) -> Matrix {
    times([1.0, 0.0, 0.0, 1.0, x, y], matrix)
}

/// Fonts that were read, by where they are kept.
pub(super) type Fonts = HashMap<ObjectId, Rc<Font>>;

/// Reads the pages of one document.
pub(super) struct Reader<'a> {
    pub(super) document: &'a mut Document,
    pub(super) probe: ObjectId,
    pub(super) fonts: Fonts,
    /// Most bytes of text of one page.
    pub(super) most: usize,
}

/// The text of a page.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) words: Words,
    /// Something on it could not be read.
    pub(super) partly: bool,
}

/// A form: what it draws, its resources and its place.
type Form = (Vec<Operation>, Dictionary, Matrix);

/// What marked content says in the place of its glyphs (`ActualText`), and whether that is said.
struct Instead {
    text: String,
    told: bool,
}

#[derive(Clone)]
struct State {
    ctm: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    character: f64,
    word: f64,
    /// 1 is as wide as drawn.
    scale: f64,
    leading: f64,
    rise: f64,
}

impl State {
    fn at(ctm: Matrix) -> Self {
        Self {
            ctm,
            font: None,
            size: 0.0,
            character: 0.0,
            word: 0.0,
            scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        }
    }
}

struct Run<'d> {
    state: State,
    kept: Vec<State>,
    marked: Vec<Option<Instead>>,
    text: Matrix,
    line: Matrix,
    drawn: &'d mut Drawn,
}

impl Reader<'_> {
    /// What a page draws. `None` where that cannot be read at all.
    pub(super) fn page(&mut self, page: ObjectId) -> Option<Drawn> {
        let dictionary = self.document.get_dictionary(page).ok()?;
        let resources = inherited(self.document, dictionary, b"Resources");
        let resources = resources.and_then(|found| found.as_dict().ok());
        let resources = resources.cloned().unwrap_or_default();
        let bytes = self.document.get_page_content(page).ok()?;
        let operations = Content::decode(&bytes).ok()?.operations;
        let mut drawn = Drawn::default();
        let mut left = MOST;
        let state = State::at(IDENTITY);
        self.follow(&operations, &resources, state, 0, &mut left, &mut drawn);
        for field in self.fields(page) {
            // Each may name a large form, and nothing of it would be kept.
            if left == 0 || drawn.words.bytes() > self.most {
                drawn.partly = true;
                break;
            }
            if let Some(tick) = self.tick(&field) {
                drawn.words.add(&tick);
                continue;
            }
            // One after another: what they draw may be large.
            if let Some((form, within, matrix)) = self.field(&field, &resources) {
                let state = State::at(matrix);
                self.follow(&form, &within, state, 1, &mut left, &mut drawn);
            }
        }
        Some(drawn)
    }

    fn follow(
        &mut self,
        operations: &[Operation],
        resources: &Dictionary,
        state: State,
        depth: usize,
        left: &mut usize,
        drawn: &mut Drawn,
    ) {
        let mut run = Run {
            state,
            kept: Vec::new(),
            marked: Vec::new(),
            text: IDENTITY,
            line: IDENTITY,
            drawn,
        };
        let mut named: HashMap<Vec<u8>, Option<Rc<Font>>> = HashMap::new();
        for operation in operations {
            if *left == 0 || run.drawn.words.bytes() > self.most {
                run.drawn.partly = true;
                return;
            }
            *left -= 1;
            let operands = &operation.operands;
            match operation.operator.as_str() {
                "Tf" => {
                    let Some(name) = operands.first().and_then(|name| name.as_name().ok()) else {
                        continue;
                    };
                    let known = named.get(name).cloned();
                    let font = known.unwrap_or_else(|| self.font(resources, name));
                    named.insert(name.to_vec(), font.clone());
                    run.state.font = font;
                    run.state.size = operands.get(1).and_then(number).unwrap_or(0.0);
                }
                "Do" => {
                    let name = operands.first().and_then(|name| name.as_name().ok());
                    let Some((form, within, matrix)) =
                        name.and_then(|name| self.form(resources, name))
                    else {
                        continue;
                    };
                    if depth >= DEEPEST {
                        run.drawn.partly = true;
                        continue;
                    }
                    let mut state = run.state.clone();
                    state.ctm = times(matrix, state.ctm);
                    self.follow(&form, &within, state, depth + 1, left, run.drawn);
                }
                "BDC" => run.mark(self.instead(resources, operands)),
                "BMC" => run.mark(None),
                "EMC" => drop(run.marked.pop()),
                operator => run.operate(operator, operands),
            }
        }
    }

    /// What marked content says in the place of its glyphs.
    fn instead(&self, resources: &Dictionary, operands: &[Object]) -> Option<Instead> {
        let properties = match operands.get(1)? {
            Object::Dictionary(inline) => inline,
            Object::Name(name) => {
                let named = dictionary(self.document, resources, b"Properties")?;
                dictionary(self.document, named, name)?
            }
            _ => return None,
        };
        let text = get(self.document, properties, b"ActualText")?;
        let text = characters(text.as_str().ok()?);
        let is_short = text.chars().nth(INSTEAD).is_none();
        is_short.then_some(Instead { text, told: false })
    }

    /// The fields of a page, and what was typed onto it: both are drawn beside what the page itself draws.
    fn fields(&self, page: ObjectId) -> Vec<Dictionary> {
        let document = &*self.document;
        let page = document.get_dictionary(page).ok();
        let all = page.and_then(|page| get(document, page, b"Annots"));
        let all = all.and_then(|all| all.as_array().ok());
        let all = all.map_or(&[][..], Vec::as_slice);
        let each = all.iter().take(FIELDS);
        let each = each.filter_map(|one| at(document, one)?.as_dict().ok());
        let typed = each.filter(|one| {
            let kind = name(document, one, b"Subtype");
            matches!(kind, Some(b"Widget" | b"FreeText"))
        });
        typed.cloned().collect()
    }

    /// A box to tick and its state, as a sign in its middle. What it draws is not text, but a glyph of a font of signs, or lines.
    fn tick(&self, field: &Dictionary) -> Option<Glyph<'static>> {
        let document = &*self.document;
        let flags = inherited(document, field, b"Ff").and_then(|flags| flags.as_i64().ok());
        let pressed = flags.is_some_and(|flags| flags & PRESSED != 0);
        if !self.is_button(field) || pressed || self.is_unseen(field) {
            return None;
        }
        let place = corners(&numbers(document, field, b"Rect")?, IDENTITY)?;
        let [left, bottom, right, top] = place;
        let size = (top - bottom).min(right - left).min(SIGN);
        if size <= 0.0 {
            return None;
        }
        let state = name(document, field, b"AS");
        let state = state.or_else(|| inherited(document, field, b"V")?.as_name().ok());
        let ticked = state.is_some_and(|state| state != b"Off");
        let line = f64::midpoint(bottom, top) - 0.35 * size;
        Some(Glyph {
            text: if ticked { "\u{2611}" } else { "\u{2610}" },
            matrix: [
                1.0,
                0.0,
                0.0,
                1.0,
                f64::midpoint(left, right) - size / 2.0,
                line,
            ],
            width: size,
            size,
            spacing: 0.0,
        })
    }

    fn is_button(&self, field: &Dictionary) -> bool {
        let kind = inherited(self.document, field, b"FT").and_then(|kind| kind.as_name().ok());
        kind.is_some_and(|kind| kind == b"Btn")
    }

    fn is_unseen(&self, field: &Dictionary) -> bool {
        let flags = get(self.document, field, b"F").and_then(|flags| flags.as_i64().ok());
        flags.is_some_and(|flags| flags & UNSEEN != 0)
    }

    /// What a field draws where it is shown; of buttons see [`Self::tick`].
    fn field(&self, field: &Dictionary, resources: &Dictionary) -> Option<Form> {
        let document = &*self.document;
        if self.is_button(field) || self.is_unseen(field) {
            return None;
        }
        let looks = dictionary(document, field, b"AP")?;
        let form = match get(document, looks, b"N")? {
            Object::Stream(form) => form,
            Object::Dictionary(states) => {
                let state = name(document, field, b"AS")?;
                get(document, states, state)?.as_stream().ok()?
            }
            _ => return None,
        };
        let matrix = numbers(document, &form.dict, b"Matrix");
        let matrix = matrix.and_then(|matrix| matrix.try_into().ok());
        let matrix = matrix.unwrap_or(IDENTITY);
        let inside = corners(&numbers(document, &form.dict, b"BBox")?, matrix)?;
        let place = corners(&numbers(document, field, b"Rect")?, IDENTITY)?;
        let within = dictionary(document, &form.dict, b"Resources");
        let operations = Content::decode(&content(form)).ok()?.operations;
        Some((
            operations,
            within.unwrap_or(resources).clone(),
            times(matrix, onto(inside, place)),
        ))
    }

    fn font(&mut self, resources: &Dictionary, name: &[u8]) -> Option<Rc<Font>> {
        let fonts = dictionary(self.document, resources, b"Font")?;
        let id = fonts.get(name).ok()?.as_reference().ok();
        if let Some(known) = id.and_then(|id| self.fonts.get(&id)) {
            return Some(known.clone());
        }
        let found = dictionary(self.document, fonts, name)?.clone();
        let font = Rc::new(Font::read(self.document, self.probe, &found));
        if let Some(id) = id {
            self.fonts.insert(id, font.clone());
        }
        Some(font)
    }

    /// A form of the page.
    fn form(&self, resources: &Dictionary, name: &[u8]) -> Option<Form> {
        let objects = dictionary(self.document, resources, b"XObject")?;
        let form = get(self.document, objects, name)?.as_stream().ok()?;
        if get(self.document, &form.dict, b"Subtype")?.as_name().ok()? != b"Form" {
            return None;
        }
        let within = dictionary(self.document, &form.dict, b"Resources");
        let matrix = numbers(self.document, &form.dict, b"Matrix");
        let matrix = matrix.and_then(|matrix| matrix.try_into().ok());
        let operations = Content::decode(&content(form)).ok()?.operations;
        Some((
            operations,
            within.unwrap_or(resources).clone(),
            matrix.unwrap_or(IDENTITY),
        ))
    }
}

/// A rectangle after a matrix: left, bottom, right, top.
fn corners(rectangle: &[f64], matrix: Matrix) -> Option<[f64; 4]> {
    let [left, bottom, right, top] = rectangle else {
        return None;
    };
    let [a, b, c, d, e, f] = matrix;
    let places = [(left, bottom), (left, top), (right, bottom), (right, top)];
    let places = places.map(|(x, y)| (a * x + c * y + e, b * x + d * y + f));
    let first = [
        f64::INFINITY,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NEG_INFINITY,
    ];
    let around = places
        .iter()
        .fold(first, |[left, bottom, right, top], (x, y)| {
            [left.min(*x), bottom.min(*y), right.max(*x), top.max(*y)]
        });
    around.iter().all(|side| side.is_finite()).then_some(around)
}

/// Puts one rectangle onto another.
fn onto(from: [f64; 4], to: [f64; 4]) -> Matrix {
    let ratio = |from: f64, to: f64| if from > 0.0 { to / from } else { 1.0 };
    let wide = ratio(from[2] - from[0], to[2] - to[0]);
    let high = ratio(from[3] - from[1], to[3] - to[1]);
    [
        wide,
        0.0,
        0.0,
        high,
        to[0] - from[0] * wide,
        to[1] - from[1] * high,
    ]
}

/// The characters of a text outside of what is drawn.
fn characters(text: &[u8]) -> String {
    match text {
        [0xfe, 0xff, text @ ..] => UTF_16BE.decode_without_bom_handling(text).0.into_owned(),
        [0xef, 0xbb, 0xbf, text @ ..] => String::from_utf8_lossy(text).into_owned(),
        text => WINDOWS_1252
            .decode_without_bom_handling(text)
            .0
            .into_owned(),
    }
}

impl Run<'_> {
    fn mark(&mut self, instead: Option<Instead>) {
        if self.marked.len() < STATES {
            self.marked.push(instead);
        }
    }

    fn operate(&mut self, operator: &str, operands: &[Object]) {
        let value = |at: usize| operands.get(at).and_then(number).unwrap_or(0.0);
        let matrix = || [0, 1, 2, 3, 4, 5].map(value);
        match operator {
            "q" if self.kept.len() < STATES => self.kept.push(self.state.clone()),
            "Q" => {
                if let Some(state) = self.kept.pop() {
                    self.state = state;
                }
            }
            "cm" if operands.len() == 6 => self.state.ctm = times(matrix(), self.state.ctm),
            "BT" => self.place(IDENTITY),
            "Tm" if operands.len() == 6 => self.place(matrix()),
            "Td" => self.place(shifted(self.line, value(0), value(1))),
            "TD" => {
                self.state.leading = -value(1);
                self.place(shifted(self.line, value(0), value(1)));
            }
            "T*" => self.next_line(),
            "Tc" => self.state.character = value(0),
            "Tw" => self.state.word = value(0),
            "Tz" => self.state.scale = value(0) / 100.0,
            "TL" => self.state.leading = value(0),
            "Ts" => self.state.rise = value(0),
            "Tj" => self.show(operands.first()),
            "'" => {
                self.next_line();
                self.show(operands.first());
            }
            "\"" => {
                self.state.word = value(0);
                self.state.character = value(1);
                self.next_line();
                self.show(operands.get(2));
            }
            "TJ" => {
                let parts = operands.first().and_then(|parts| parts.as_array().ok());
                for part in parts.into_iter().flatten() {
                    match number(part) {
                        Some(back) => {
                            let back = back / 1000.0 * self.state.size * self.state.scale;
                            self.text = shifted(self.text, -back, 0.0);
                        }
                        None => self.show(Some(part)),
                    }
                }
            }
            _ => {}
        }
    }

    fn place(&mut self, matrix: Matrix) {
        self.text = matrix;
        self.line = matrix;
    }

    fn next_line(&mut self) {
        self.place(shifted(self.line, 0.0, -self.state.leading));
    }

    fn show(&mut self, string: Option<&Object>) {
        let Some(Object::String(string, _)) = string else {
            return;
        };
        let Some(font) = self.state.font.clone() else {
            self.drawn.partly |= !string.is_empty();
            return;
        };
        font.shows(string, |shown| self.glyph(&shown));
    }

    fn glyph(&mut self, shown: &Shown) {
        let state = &self.state;
        let placed = [state.scale, 0.0, 0.0, 1.0, 0.0, state.rise];
        let drawn = times(placed, times(self.text, state.ctm));
        let advance = shown.width / 1000.0 * state.size;
        let spacing = state.character + if shown.space { state.word } else { 0.0 };
        let along = drawn[0].hypot(drawn[1]);
        let (text, unknown) = match self.marked.iter_mut().find_map(Option::as_mut) {
            None => (shown.text.as_str(), shown.unknown),
            Some(said) if said.told => ("", false),
            Some(said) => {
                said.told = true;
                (said.text.as_str(), false)
            }
        };
        self.drawn.partly |= unknown;
        self.drawn.words.add(&Glyph {
            text,
            matrix: drawn,
            width: advance * along,
            size: (state.size * drawn[2].hypot(drawn[3])).abs(),
            spacing: spacing * along,
        });
        self.text = shifted(self.text, (advance + spacing) * state.scale, 0.0);
    }
}
