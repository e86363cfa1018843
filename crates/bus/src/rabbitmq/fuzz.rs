//! Headers as any client of the broker may write them: the table as it comes over the connection.
//!
//! The table itself is read by amq-protocol, by recursion and without a bound: lists in lists, thousands deep, would end
//! the process before anything of ours sees them.

use lapin::BasicProperties;
use lapin::types::parsing::parse_field_table;
use tg_testkit::fuzz::door;

use super::wire::envelope;

/// What a length says, and so many bytes.
fn sized(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("short");
    [&length.to_be_bytes()[..], bytes].concat()
}

fn entry(name: &str, kind: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("short");
    [&[length][..], name.as_bytes(), &[kind], value].concat()
}

fn entries() -> Vec<u8> {
    let inner = entry("a", b't', &[1]);
    let list = [&[b'F'][..], &sized(&inner), b"I\0\0\0\x07"].concat();
    [
        entry("id", b'S', &sized("ä".as_bytes())),
        entry("seq", b'l', &7_i64.to_be_bytes()),
        entry("frame", b'S', &sized(b"part")),
        entry("deadline", b'd', &1e300_f64.to_be_bytes()),
        entry("x-death", b'A', &sized(&list)),
        entry("other", b'V', b""),
    ]
    .concat()
}

#[test]
fn tables_of_headers() {
    let seed = entries();
    let read = |bytes: &[u8]| {
        let (_, table) = parse_field_table(bytes).ok()?;
        let properties = BasicProperties::default().with_headers(table);
        Some(envelope(&properties, Vec::new()))
    };
    let whole = read(&sized(&seed)).expect("a table");
    assert_eq!(whole.headers.seq, Some(7));
    // The table's own length is right: else nothing in it is ever read.
    door("tables of headers", &[&seed], |bytes, _| {
        let _ = read(&sized(bytes));
    });
}
