//! HTML to Markdown. Scripts, styles, the frame of the site and what is not shown are left out.

use std::rc::Rc;

use encoding_rs::Encoding;
use htmd::element_handler::{HandlerResult, Handlers};
use htmd::options::Options;
use htmd::{Element, HtmlToMarkdown};
use markup5ever_rcdom::{Handle, NodeData};
use tg_document::charset;
use tg_document::text::{leniently, tidy};

use super::frames::DecodeError;
use super::main_content::{self, SKIPPED};
use super::raised::{is_base, is_exponent};
use super::{page, table};

pub(super) fn decode(input: &[u8]) -> Result<String, DecodeError> {
    decode_as(input, None)
}

/// The same of a page whose charset was said beside it.
pub(super) fn decode_as(
    input: &[u8],
    said: Option<&'static Encoding>,
) -> Result<String, DecodeError> {
    let (text, _) = leniently(input, said.or_else(|| charset::of_html(input)));
    let tree = page::parse(&text).ok_or(DecodeError::Damaged)?;
    let _taken = main_content::keep(&tree);
    let converter = HtmlToMarkdown::builder()
        .skip_tags(SKIPPED.to_vec())
        .add_handler(vec!["table"], table::table)
        .add_handler(vec!["sup"], raised)
        .options(Options {
            ul_bullet_spacing: 1,
            ol_number_spacing: 1,
            ..Options::default()
        })
        .build();
    Ok(tidy(&unescaped(&converter.tree_to_markdown(&tree))))
}

/// Children of an element whose raised texts are looked at.
const MOST_BESIDE: usize = 4_096;

/// Writes an exponent as one; other raised texts, and links to notes, as the converter does.
fn raised(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    match exponent(element.node) {
        Some(exponent) => Some(exponent.into()),
        None => handlers.fallback(element),
    }
}

/// `^6` of `10<sup>6</sup>`.
fn exponent(node: &Handle) -> Option<String> {
    let texts = node.children.borrow();
    let texts: Option<String> = texts.iter().map(own_text).collect();
    let text = texts.filter(|text| is_exponent(text))?;
    let above = page::parent(node)?;
    let beside = above.children.borrow();
    // Each is looked for among all beside it.
    if beside.len() > MOST_BESIDE {
        return None;
    }
    let at = beside.iter().position(|one| Rc::ptr_eq(one, node))?;
    let before = own_text(beside.get(at.checked_sub(1)?)?)?;
    is_base(&before).then(|| format!("^{}", text.trim()))
}

/// The text that a node is; `None` of what is none.
fn own_text(node: &Handle) -> Option<String> {
    match &node.data {
        NodeData::Text { contents } => Some(contents.borrow().to_string()),
        _ => None,
    }
}

/// What the converter escapes within a line.
const ESCAPED: &[char] = &['_', '*', '[', ']', '\\', '`', '<'];

/// Takes that back, outside of code: people look for a name, and quote it, as the page has it. What would begin a heading or a
/// list stays escaped.
fn unescaped(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut fenced = false;
    for line in markdown.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        if fenced || is_fence {
            out.push_str(line);
            continue;
        }
        let (mut code, mut begun) = (false, false);
        let mut chars = line.chars().peekable();
        while let Some(char) = chars.next() {
            code ^= char == '`';
            let escaped = match char {
                // A line of nothing else would underline a heading.
                '\\' if !code => {
                    chars.next_if(|next| ESCAPED.contains(next) || begun && *next == '=')
                }
                _ => None,
            };
            begun |= !char.is_whitespace();
            out.push(escaped.unwrap_or(char));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::page::{DEEPEST, DEEPEST_INDENTED};

    fn text(body: &str) -> String {
        let page = format!("<!doctype html><title>T</title><body>{body}</body>");
        decode(page.as_bytes()).expect("decoded")
    }

    const FRAME: &str = "<header><h1>Bridges</h1><p>The Daily Gazette</p></header>\
        <div id=cookie-banner><p>We use cookies.</p></div><nav>Home</nav>";
    const END: &str = "<aside>Read more</aside><div role=contentinfo>Imprint</div>\
        <div class='x onetrust-pc'>Accept all</div><footer>Copyright</footer>";

    #[test]
    fn the_frame_of_a_site_is_left_out_and_what_a_page_is_called_stays() {
        // Wherever the page itself stands.
        for page in [
            "<p>The oldest one is of stone.</p>",
            "<main><p>The oldest one is of stone.</p></main>",
            "<div role=main><p>The oldest one is of stone.</p></div>",
            "<div><article><p>The oldest one is of stone.</p></article></div><p>Ad</p>",
        ] {
            let whole = text(&format!("{FRAME}{page}{END}"));
            assert_eq!(whole, "# Bridges\n\nThe oldest one is of stone.", "{page}");
        }
    }

    #[test]
    fn names_stand_as_the_page_has_them() {
        let page = "<p>Set max_file_size in C:\\temp to [1].</p><p>Not <code>a\\_b</code></p><pre><code>x\\_y</code></pre>";
        let whole = text(page);
        assert!(
            whole.starts_with("Set max_file_size in C:\\temp to [1]."),
            "{whole}"
        );
        assert!(
            whole.contains("`a\\_b`") && whole.contains("x\\_y"),
            "{whole}"
        );
        assert_eq!(text("<p># no heading</p>"), "\\# no heading");
    }

    #[test]
    fn exponents_are_told_from_digits_beside_them() {
        let page = "<p>100<sup>2</sup>=10000, 10<sup>-12</sup> m, the 1<sup>st</sup> lamp.</p>";
        assert_eq!(text(page), "100^2=10000, 10^-12 m, the 1st lamp.");
        let note = text("<p>a lamp<sup><a href='#n'>3</a></sup></p>");
        assert!(note.contains('3') && !note.contains('^'), "{note}");
        let cell = "<table><tr><th>a<th>b<tr><td>x<sup>2</sup><td>CO<sub>2</sub></table>";
        assert_eq!(text(cell), "| a | b |\n| --- | --- |\n| x^2 | CO2 |");
    }

    #[test]
    fn every_cell_of_a_table_stays_in_its_column() {
        // Rows that name themselves, below columns with names and without.
        let years = "<table><caption>Height</caption><thead><tr><td><th>2000<th>2001</thead>\
                     <tr><th>Ann<td>5 ft<td>6 ft<tr><th>Bob<td>a|b<td></table>";
        assert_eq!(
            text(years),
            "Height\n\n|  | 2000 | 2001 |\n| --- | --- | --- |\n| Ann | 5 ft | 6 ft |\n| Bob | a\\|b |  |"
        );
        let about = "<table><tr><th>Born<td>1815<tr><th>Died<td><p>1852<p>London</table>";
        assert_eq!(text(about), "| Born | 1815 |\n| Died | 1852 London |");
        // A title above all columns, a second row of names, and a foot.
        let more = "<table><thead><tr><th colspan=2>Ada<tr><th>a<th>b</thead><tr><td>1<td>2\
                    <tfoot><tr><td>sum<td>3</table>";
        assert_eq!(
            text(more),
            "| Ada |  |\n| --- | --- |\n| a | b |\n| 1 | 2 |\n| sum | 3 |"
        );
        // What spans rows is written in each, and the columns behind it stay theirs.
        let spanned = "<table><tr><th>Land<th>City<th>People<tr><td rowspan=2>France<td>Paris<td>2\
                       <tr><td>Lyon<td>1<tr><td>Spain<td>Madrid<td>3</table>";
        assert_eq!(
            text(spanned),
            "| Land | City | People |\n| --- | --- | --- |\n| France | Paris | 2 |\n| France | Lyon | 1 |\n\
             | Spain | Madrid | 3 |"
        );
    }

    #[test]
    fn keys_that_sort_a_table_are_no_text() {
        let key = "<span class=sortkey style='display: none'>7004279940</span>";
        let table = format!("<table><tr><th>Land<th>People<tr><td>Peru<td>{key}27,994</table>");
        assert_eq!(
            text(&table),
            "| Land | People |\n| --- | --- |\n| Peru | 27,994 |"
        );
        let panel = "<p>Shown.</p><div style='display:none'><p>Opened by a click.</p></div>";
        assert!(text(panel).contains("Opened"), "{}", text(panel));
    }

    #[test]
    fn tables_of_short_cells_are_rows_without_names() {
        let prices = "<table><tr><td>Lamp<td>12 €<tr><td>Chair<td>30 €</table>";
        assert_eq!(text(prices), "| Lamp | 12 € |\n| Chair | 30 € |");
        let long = format!(
            "<table><tr><td>a<td>{}<tr><td>b<td>c</table>",
            "x".repeat(200)
        );
        assert!(!text(&long).contains('|'));
    }

    #[test]
    fn tables_that_lay_out_a_page_are_its_text() {
        let layout =
            "<table><tr><td><p>One.</p><td><table><tr><th>a<th>b<tr><td>1<td>2</table></table>";
        let whole = text(layout);
        assert!(whole.contains("One.") && !whole.contains('|'), "{whole}");
        assert!(whole.contains('a') && whole.contains('2'), "{whole}");
    }

    #[test]
    fn what_belongs_to_the_page_stays() {
        let own = "<main><article><header><h1>Bridges</h1><p>By Ann Lee</p></header><p>Of stone.</p>\
                   <aside>A note.</aside><footer>1 May</footer></article></main>";
        assert_eq!(
            text(&format!("<header>Gazette</header>{own}")),
            "# Bridges\n\nBy Ann Lee\n\nOf stone.\n\nA note.\n\n1 May"
        );
        let sections = "<section><header><h2>One</h2></header><p>First.</p></section>\
                        <section><header><h2>Two</h2></header><p>Second.</p></section>";
        assert_eq!(text(sections), "## One\n\nFirst.\n\n## Two\n\nSecond.");
        let recipe = "<div class=cookie-recipe><p>Bake for ten minutes.</p></div>";
        assert_eq!(text(recipe), "Bake for ten minutes.");
        // An article that is a small part of the page is not the page, and neither is a `main` that holds next to nothing.
        let shop = "<p>A long text about all the lamps that are sold here.</p><article>One lamp.</article>";
        assert!(text(shop).starts_with("A long text"), "{}", text(shop));
        let script = "<main>Wait</main><div>The whole text of the page stands beside.</div>";
        assert!(text(script).contains("The whole text"));
        // A page of nothing but a frame is read as it is.
        assert_eq!(text("<header>Only this</header>"), "Only this");
    }

    #[test]
    fn an_article_in_an_element_that_is_called_like_a_banner_stays() {
        let law = "<h1>What the law says</h1><p>The regulation took effect in May 2018.</p>\
                   <p>A controller answers within a month.</p>";
        let links = "<div class=links><p>Other guides.</p></div>";
        for named in [
            "id=gdpr-law-guide",
            "class='page gdpr-notice-text'",
            "class=cookie-law",
            "class=cookiebar-article",
        ] {
            let whole = text(&format!("<div {named}>{law}</div>{links}"));
            assert!(
                whole.contains("May 2018") && whole.contains("a month"),
                "{named}: {whole}"
            );
        }
        // A chapter of a longer page, and a page with a form.
        let long = format!(
            "<p>{}</p>",
            "What cookies are, and how long they stay. ".repeat(30)
        );
        let beside = format!("<p>{}</p>", "Other words of the page. ".repeat(200));
        let chapter = text(&format!(
            "{beside}<section class=cookie-notice>{long}</section>"
        ));
        assert!(chapter.contains("What cookies are"));
        let form = "<form><input name=mail><button>Subscribe</button></form>";
        let page = text(&format!(
            "<div id=gdpr-box><h1>Cookies</h1>{long}{form}</div>{links}"
        ));
        assert!(page.contains("What cookies are"), "{page}");
        // All of a page in what is frame by its kind.
        for (open, close) in [
            ("<aside>", "</aside>"),
            ("<div role=dialog>", "</div>"),
            ("<header>", "</header>"),
        ] {
            let page = text(&format!(
                "<a href=x>Skip</a>{open}{long}{close}<footer>Imprint</footer>"
            ));
            assert!(
                page.contains("What cookies are") && !page.contains("Imprint"),
                "{open}: {page}"
            );
        }
    }

    #[test]
    fn banners_go_however_long_they_are_and_however_short_the_page() {
        let short = "<p>Closed today.</p>";
        for banner in [
            "<div class=cookie-banner><h2>We value your privacy</h2><p>We and our partners use cookies.</p><button>OK</button></div>",
            "<div id=gdpr-popup><form><p>May we keep your data for longer than the page?</p><input type=submit></form></div>",
            "<div class=cookie-notice><p>We use it.</p></div>",
        ] {
            assert_eq!(
                text(&format!("{short}{banner}")),
                "Closed today.",
                "{banner}"
            );
        }
        let list = "<p>A cookie that counts visits, kept for a year.</p>".repeat(100);
        let program = format!("<div id=CybotCookiebotDialog>{list}</div>");
        assert_eq!(text(&format!("{short}{program}")), "Closed today.");
        let beside = format!(
            "<p>{}</p><aside>{list}</aside>",
            "Words of the page. ".repeat(80)
        );
        assert!(!text(&beside).contains("counts visits"));
    }

    #[test]
    fn nesting_is_bounded() {
        let lists = |depth: usize| "<ul><li>x".repeat(depth);
        assert!(decode(lists(DEEPEST_INDENTED).as_bytes()).is_ok());
        let deeper = lists(DEEPEST_INDENTED + 1);
        assert_eq!(decode(deeper.as_bytes()), Err(DecodeError::Damaged));
        let spans = "<span>".repeat(DEEPEST);
        assert_eq!(decode(spans.as_bytes()), Err(DecodeError::Damaged));
        let flat = "<ul><li>a<li>b<OL ><li>c</ol></ul><blockquote>d</blockquote>";
        let text = decode(flat.repeat(DEEPEST).as_bytes()).expect("decoded");
        assert!(text.starts_with("* a\n* b\n"), "{text:.40}");
    }
}
