//! The tree of a web page, as browsers would build it, for as long as it is flat enough. The parser, and what writes
//! the tree out, take time with the square of its depth; so the tree is measured while it grows, and given up early.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, parse_document};
use markup5ever_rcdom::{Handle, Node, NodeData, RcDom};

/// Elements whose content is indented once more by each of them.
const INDENTED: &[&str] = &["ul", "ol", "dl", "blockquote"];
/// How deep these may be nested. No page that people read comes near it.
pub(super) const DEEPEST_INDENTED: usize = 256;
/// How deep elements may be nested, whichever they are.
pub(super) const DEEPEST: usize = 1024;
/// Bytes that the parser is given between two looks at how deep it is by now.
const PIECE: usize = 4 << 10;

/// The document's node; `None` if it is nested too deeply.
pub(super) fn parse(text: &str) -> Option<Handle> {
    let mut parser = parse_document(Page::default(), ParseOpts::default());
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, after) = rest.split_at(end);
        parser.process(StrTendril::from_slice(piece));
        if parser.tokenizer.sink.sink.too_deep.get() {
            return None;
        }
        rest = after;
    }
    let page = parser.finish();
    (!page.too_deep.get()).then_some(page.dom.document)
}

/// What stands above a node.
pub(super) fn parent(node: &Node) -> Option<Handle> {
    let parent = node.parent.take();
    let above = parent.as_ref().and_then(Weak::upgrade);
    node.parent.set(parent);
    above
}

/// A tree that knows whether it is too deep. Everything else is [`RcDom`]'s.
#[derive(Default)]
struct Page {
    dom: RcDom,
    too_deep: Cell<bool>,
    /// The `template` of each tree of contents, which lies apart from the document.
    templates: RefCell<HashMap<*const Node, Handle>>,
}

impl Page {
    /// Counts from a node up to the document.
    fn measure(&self, node: Handle) {
        let (mut depth, mut indented) = (0, 0);
        let mut here = Some(node);
        while let Some(node) = here {
            if let NodeData::Element { name, .. } = &node.data {
                depth += 1;
                indented += usize::from(INDENTED.contains(&&*name.local));
            }
            if depth > DEEPEST || indented > DEEPEST_INDENTED {
                self.too_deep.set(true);
                return;
            }
            here = self.above(&node);
        }
    }

    fn above(&self, node: &Handle) -> Option<Handle> {
        parent(node).or_else(|| self.templates.borrow().get(&Rc::as_ptr(node)).cloned())
    }
}

/// The node to measure once it has its place; texts are as deep as what they stand in.
fn measured(child: &NodeOrText<Handle>) -> Option<Handle> {
    match child {
        NodeOrText::AppendNode(node) => Some(node.clone()),
        NodeOrText::AppendText(_) => None,
    }
}

impl TreeSink for Page {
    type Handle = Handle;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }

    /// Nobody asks for them, and a page may have any number.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        let node = measured(&child);
        self.dom.append(parent, child);
        node.into_iter().for_each(|node| self.measure(node));
    }

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        let node = measured(&child);
        self.dom.append_before_sibling(sibling, child);
        node.into_iter().for_each(|node| self.measure(node));
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        previous: &Handle,
        child: NodeOrText<Handle>,
    ) {
        let node = measured(&child);
        self.dom
            .append_based_on_parent_node(element, previous, child);
        node.into_iter().for_each(|node| self.measure(node));
    }

    fn get_template_contents(&self, target: &Handle) -> Handle {
        let contents = self.dom.get_template_contents(target);
        let mut templates = self.templates.borrow_mut();
        templates.insert(Rc::as_ptr(&contents), target.clone());
        contents
    }

    fn get_document(&self) -> Handle {
        self.dom.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.dom.elem_name(target)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.dom.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.dom.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.dom.create_pi(target, data)
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.dom.append_doctype_to_document(name, public, system);
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        self.dom.same_node(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }

    fn add_attrs_if_missing(&self, target: &Handle, attrs: Vec<Attribute>) {
        self.dom.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.dom.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Handle, parent: &Handle) {
        self.dom.reparent_children(node, parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, target: &Handle) -> bool {
        self.dom.is_mathml_annotation_xml_integration_point(target)
    }

    fn maybe_clone_an_option_into_selectedcontent(&self, option: &Handle) {
        self.dom.maybe_clone_an_option_into_selectedcontent(option);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn elements_may_be_nested_to_the_bound() {
        // `html` and `body` are there whether they are written or not.
        let room = DEEPEST - 2;
        for (open, close) in [("<div>", "</div>"), ("<pre>", "</ul>"), ("<b x=1>", "")] {
            let page = |depth: usize| format!("{open}a{close}").repeat(depth);
            let flat = format!("{open}a</div></pre></b>").repeat(3 * DEEPEST);
            assert!(parse(&flat).is_some(), "{open}");
            let nested = open.repeat(room);
            assert!(parse(&nested).is_some() || open == "<b x=1>", "{open}");
            let deeper = format!("{nested}{open}");
            assert!(parse(&deeper).is_none() || open == "<b x=1>", "{open}");
            let balanced = close == "</div>";
            assert_eq!(parse(&page(2 * DEEPEST)).is_some(), balanced, "{open}");
        }
    }

    #[test]
    fn what_is_left_open_where_it_may_be_is_not_nested() {
        for part in ["<p>a", "<li>a", "<a name=b>c", "<br>", "<td>a", "<option>a"] {
            assert!(parse(&part.repeat(4 * DEEPEST)).is_some(), "{part}");
        }
        let row = "<tr><td>a<td>b";
        let table = format!("<table>{}</table>", row.repeat(DEEPEST));
        assert!(parse(&table).is_some());
    }

    #[test]
    fn neither_templates_nor_tables_hide_depth() {
        for part in ["<template>", "<table><td>", "<object></div>", "<svg><g>"] {
            assert!(parse(&part.repeat(DEEPEST)).is_none(), "{part}");
        }
        let before = format!("<table>{}", "<pre>".repeat(DEEPEST));
        assert!(parse(&before).is_none(), "what is moved before its table");
    }

    /// Took minutes, as each end of a list was looked for through all that was open.
    #[test]
    fn a_page_that_is_too_deep_is_given_up_early() {
        let begun = Instant::now();
        assert!(parse(&"<pre>c</ul>".repeat(100_000)).is_none());
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
