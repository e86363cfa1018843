//! What of a web page is the page, without the frame that a site puts around each: its header and footer, what stands
//! beside, menus, dialogs, and the banner that asks about cookies. Works on the tree, whose depth is bounded.

use std::collections::HashSet;
use std::rc::Rc;

use markup5ever_rcdom::{Handle, Node, NodeData};

/// What has no text, or none that is part of a page.
pub(super) const SKIPPED: &[&str] = &[
    "nav", "script", "style", "noscript", "template", "head", "iframe", "svg", "canvas", "object",
    "img", "video", "audio", "input", "select", "button",
];
/// Parts of the name of an element that asks for consent, beside `cookie` or `gdpr`.
const BANNER: [&str; 12] = [
    "banner",
    "bar",
    "box",
    "consent",
    "dialog",
    "law",
    "message",
    "modal",
    "notice",
    "notification",
    "overlay",
    "popup",
];
/// What the usual programs for it call theirs.
const PROGRAMS: [&str; 6] = [
    "cookieconsent",
    "cybotcookiebot",
    "didomi",
    "onetrust",
    "qc-cmp",
    "usercentrics",
];
/// `main` is the page where it has this part of the letters at least; an `article` where it has half of them.
const PART_OF_MAIN: usize = 4;
const PART_OF_ARTICLES: usize = 2;

/// Elements that may turn out to hold the page though they are called like its frame; each is measured, so there is an end.
const MEASURED: usize = 64;
/// Letters in paragraphs that are too many for a request to agree, which is put beside a button besides.
const MUCH: usize = 600;
/// An element that is frame by its kind is the page all the same where it has so many times the letters of all else.
const TIMES_THE_REST: usize = 5;
/// What people press.
const CONTROLS: &[&str] = &["button", "input", "select", "form"];

/// Where an element stands.
#[derive(Clone, Copy, Default)]
struct Within {
    /// In a `main` or an `article`.
    content: bool,
    /// In a `section`.
    section: bool,
}

impl Within {
    fn inside(self, node: &Node) -> Self {
        let (name, role) = (name(node), role(node));
        Self {
            content: self.content || matches!(name, "main" | "article") || role == "main",
            section: self.section || name == "section",
        }
    }
}

type Nodes = HashSet<*const Node>;

/// Leaves of a page what it is about. A page that would be empty then stays as it is. What was taken out is to be held for
/// as long as the tree: a node that goes empties all below it, also what stands elsewhere by now.
pub(super) fn keep(document: &Handle) -> Vec<Handle> {
    let mut taken = Vec::new();
    let Some(body) = elements(document, &["body"]).into_iter().next() else {
        return taken;
    };
    let heading = heading(&body, Within::default());
    let mut frame = Nodes::new();
    let mut measure = Measure::of(&body);
    find_frame(&body, Within::default(), &mut measure, &mut frame);
    let whole = letters(&body, &frame);
    if whole == 0 {
        return taken;
    }
    cut(&body, &frame, &mut taken);
    let none = Nodes::new();
    let chosen = |names: &[&str], part: usize| {
        let found = elements(&body, names);
        let held: usize = found.iter().map(|one| letters(one, &none)).sum();
        (held > 0 && held * part >= whole).then_some(found)
    };
    let page = chosen(&["main"], PART_OF_MAIN).or_else(|| chosen(&["article"], PART_OF_ARTICLES));
    if let Some(page) = page {
        taken.append(&mut body.children.borrow_mut());
        *body.children.borrow_mut() = page;
    }
    // What the page is called stands in its frame at times.
    if let Some(heading) = heading.filter(|_| elements(&body, &["h1"]).is_empty()) {
        body.children.borrow_mut().insert(0, heading);
    }
    taken
}

/// The name of an element; empty where it is none.
pub(super) fn name(node: &Node) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}

/// Elements of these names, the outermost of each.
pub(super) fn elements(node: &Handle, names: &[&str]) -> Vec<Handle> {
    let mut found = Vec::new();
    for child in node.children.borrow().iter() {
        match names.contains(&name(child)) || (names.contains(&"main") && role(child) == "main") {
            true => found.push(child.clone()),
            false => found.extend(elements(child, names)),
        }
    }
    found
}

/// The value of an attribute in lower case; empty where there is none.
pub(super) fn attribute(node: &Node, wanted: &str) -> String {
    let NodeData::Element { attrs, .. } = &node.data else {
        return String::new();
    };
    let attrs = attrs.borrow();
    let found = attrs.iter().find(|one| &*one.name.local == wanted);
    found.map_or_else(String::new, |one| one.value.to_lowercase())
}

/// What an element is for, in lower case.
pub(super) fn role(node: &Node) -> String {
    attribute(node, "role").trim().to_owned()
}

fn find_frame(node: &Handle, within: Within, measure: &mut Measure, frame: &mut Nodes) {
    for child in node.children.borrow().iter() {
        if is_unseen(child) || is_frame(child, within) && !measure.is_page(child) {
            frame.insert(Rc::as_ptr(child));
            continue;
        }
        find_frame(child, within.inside(child), measure, frame);
    }
}

/// Tells the page from its frame where names alone say that it is frame: an article about cookies stands in an element that
/// is called so, and some pages stand in a header or a dialog as a whole.
struct Measure {
    /// Letters of the whole page.
    all: usize,
    /// Elements that may still be measured.
    left: usize,
}

impl Measure {
    fn of(body: &Handle) -> Self {
        Self {
            all: letters(body, &Nodes::new()),
            left: MEASURED,
        }
    }

    fn is_page(&mut self, node: &Handle) -> bool {
        let (element, role) = (name(node), role(node));
        if matches!(element, "nav" | "footer")
            || matches!(role.as_str(), "navigation" | "search" | "contentinfo")
            || is_program(node)
            || self.left == 0
        {
            return false;
        }
        self.left -= 1;
        let held = prose(node);
        let rest = self.all.saturating_sub(letters(node, &Nodes::new()));
        if element == "aside" || element == "header" || !asks_for_consent(node) {
            // By its kind it is frame; only that hardly anything is beside it says otherwise.
            return held >= MUCH && held >= rest.saturating_mul(TIMES_THE_REST);
        }
        if !elements(node, CONTROLS).is_empty() {
            // It asks something; a page with a form has more to say, and a heading.
            return held >= MUCH && held > rest && !elements(node, &["h1"]).is_empty();
        }
        held >= MUCH || held > rest
    }
}

/// Letters in paragraphs, headings and lists, without what is left out and what is pressed.
fn prose(node: &Handle) -> usize {
    let none = Nodes::new();
    let children = node.children.borrow();
    let each = children.iter().map(|child| match name(child) {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "li" | "blockquote" | "table" | "pre" => {
            letters(child, &none)
        }
        skipped if SKIPPED.contains(&skipped) => 0,
        _ => prose(child),
    });
    each.sum()
}

/// The first heading of the page, also where it stands in the header of the site.
fn heading(node: &Handle, within: Within) -> Option<Handle> {
    node.children.borrow().iter().find_map(|child| {
        let header = name(child) == "header" || role(child) == "banner";
        match name(child) {
            "h1" => Some(child.clone()),
            _ if is_frame(child, within) && !header => None,
            _ => heading(child, within.inside(child)),
        }
    })
}

fn is_frame(node: &Handle, within: Within) -> bool {
    let role = role(node);
    match (name(node), role.as_str()) {
        ("", _) => false,
        ("nav", _) | (_, "navigation" | "search" | "dialog" | "alertdialog") => true,
        // Articles and sections have headers and footers of their own.
        ("header" | "footer", _) | (_, "banner" | "contentinfo") => {
            !within.content && !within.section
        }
        ("aside", _) | (_, "complementary") => !within.content,
        ("main" | "article" | "h1", _) => false,
        _ => asks_for_consent(node) && elements(node, &["main", "article"]).is_empty(),
    }
}

/// Whether nobody sees a part of a line, such as the key that a table is sorted by. What has several words stays: people may open
/// it.
fn is_unseen(node: &Node) -> bool {
    let style = || attribute(node, "style").replace(char::is_whitespace, "");
    let is_word = |one: &Handle| match &one.data {
        NodeData::Text { contents } => !contents.borrow().trim().contains(char::is_whitespace),
        _ => true,
    };
    name(node) == "span"
        && style().contains("display:none")
        && node.children.borrow().iter().all(is_word)
}

/// Whether an element is called what those are that ask about cookies.
fn asks_for_consent(node: &Node) -> bool {
    let named = |text: &str| {
        let about = text.contains("cookie") || text.contains("gdpr");
        about && BANNER.iter().any(|word| text.contains(word))
    };
    is_called(node, named) || is_program(node)
}

/// Whether one of the usual programs for it has put an element there.
fn is_program(node: &Node) -> bool {
    let named = |text: &str| PROGRAMS.iter().any(|program| text.starts_with(program));
    is_called(node, named)
}

fn is_called(node: &Node, named: impl Fn(&str) -> bool) -> bool {
    let class = attribute(node, "class");
    named(&attribute(node, "id")) || class.split_whitespace().any(named)
}

/// Letters and digits of texts below a node, but for what is left out and what is no text of the page.
fn letters(node: &Handle, without: &Nodes) -> usize {
    if without.contains(&Rc::as_ptr(node)) || SKIPPED.contains(&name(node)) {
        return 0;
    }
    match &node.data {
        NodeData::Text { contents } => {
            let text = contents.borrow();
            text.chars().filter(|one| one.is_alphanumeric()).count()
        }
        _ => {
            let children = node.children.borrow();
            children.iter().map(|child| letters(child, without)).sum()
        }
    }
}

fn cut(node: &Handle, frame: &Nodes, taken: &mut Vec<Handle>) {
    let mut children = node.children.borrow_mut();
    let is_frame = |child: &mut Handle| frame.contains(&Rc::as_ptr(child));
    taken.extend(children.extract_if(.., is_frame));
    children.iter().for_each(|child| cut(child, frame, taken));
}
