//! Signs that Word keeps as places in its fonts of signs, not as characters.

/// Greek letters at the places of Latin ones in `Symbol`, from `A` and from `a` on.
const CAPITALS: &str = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ";
const SMALL: &str = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ";

const SYMBOL: &[(u32, char)] = &[
    (0x22, '∀'),
    (0x24, '∃'),
    (0x2d, '−'),
    (0x40, '≅'),
    (0x5c, '∴'),
    (0x5e, '⊥'),
    (0x7e, '∼'),
    (0xa2, '′'),
    (0xa3, '≤'),
    (0xa5, '∞'),
    (0xab, '↔'),
    (0xac, '←'),
    (0xad, '↑'),
    (0xae, '→'),
    (0xaf, '↓'),
    (0xb0, '°'),
    (0xb1, '±'),
    (0xb2, '″'),
    (0xb3, '≥'),
    (0xb4, '×'),
    (0xb5, '∝'),
    (0xb6, '∂'),
    (0xb7, '•'),
    (0xb8, '÷'),
    (0xb9, '≠'),
    (0xba, '≡'),
    (0xbb, '≈'),
    (0xbc, '…'),
    (0xc6, '∅'),
    (0xc7, '∩'),
    (0xc8, '∪'),
    (0xce, '∈'),
    (0xcf, '∉'),
    (0xd1, '∇'),
    (0xd2, '®'),
    (0xd3, '©'),
    (0xd4, '™'),
    (0xd5, '∏'),
    (0xd6, '√'),
    (0xd8, '¬'),
    (0xdb, '⇔'),
    (0xdc, '⇐'),
    (0xde, '⇒'),
    (0xe5, '∑'),
    (0xf2, '∫'),
];

const WINGDINGS: &[(u32, char)] = &[
    (0x6c, '●'),
    (0x6e, '■'),
    (0x6f, '☐'),
    (0xa7, '▪'),
    (0xa8, '☐'),
    (0xdf, '←'),
    (0xe0, '→'),
    (0xe1, '↑'),
    (0xe2, '↓'),
    (0xfb, '✗'),
    (0xfc, '✓'),
    (0xfd, '☒'),
    (0xfe, '☑'),
];

const WINGDINGS_2: &[(u32, char)] = &[
    (0x4f, '✗'),
    (0x50, '✓'),
    (0x51, '☒'),
    (0x52, '☑'),
    (0x53, '☒'),
    (0x54, '☒'),
    (0xa3, '☐'),
];

/// The character of a sign: its font, and its place there in hexadecimal digits. `None` where nobody knows it.
pub(super) fn sign(font: &str, place: &str) -> Option<char> {
    let place = u32::from_str_radix(place.trim(), 16).ok()?;
    let byte = match place {
        0xf000..=0xf0ff => place - 0xf000,
        other => other,
    };
    let known = match font.trim() {
        "Symbol" => SYMBOL,
        "Wingdings" => WINGDINGS,
        "Wingdings 2" => WINGDINGS_2,
        _ => return char::from_u32(place).filter(|one| is_said(*one)),
    };
    let found = known.iter().find(|(at, _)| *at == byte);
    if let Some((_, sign)) = found {
        return Some(*sign);
    }
    if byte > 0xff {
        return char::from_u32(place).filter(|one| is_said(*one));
    }
    if font.trim() != "Symbol" {
        return None;
    }
    let letter = |from: u8, letters: &str| {
        let at = byte.checked_sub(u32::from(from))?;
        letters.chars().nth(usize::try_from(at).ok()?)
    };
    let plain = || char::from_u32(byte).filter(|one| (' '..='~').contains(one));
    let greek = letter(b'A', CAPITALS).or_else(|| letter(b'a', SMALL));
    greek.or_else(plain)
}

/// Not a place of a font's own, and not a control character.
fn is_said(one: char) -> bool {
    !one.is_control() && !('\u{e000}'..='\u{f8ff}').contains(&one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_known_by_font_and_place() {
        for (font, place, wanted) in [
            ("Wingdings", "F0FE", Some('☑')),
            ("Wingdings", "00FE", Some('☑')),
            ("Wingdings", "F0E0", Some('→')),
            ("Wingdings 2", "F0A3", Some('☐')),
            ("Wingdings", "F041", None),
            ("Symbol", "F061", Some('α')),
            ("Symbol", "F05A", Some('Ζ')),
            ("Symbol", "F0B3", Some('≥')),
            ("Symbol", "F028", Some('(')),
            ("Segoe UI Symbol", "2611", Some('☑')),
            ("Webdings", "F0A3", None),
            ("Arial", "no", None),
            ("Arial", "0007", None),
        ] {
            assert_eq!(sign(font, place), wanted, "{font} {place}");
        }
        assert_eq!((CAPITALS.chars().count(), SMALL.chars().count()), (26, 26));
    }
}
