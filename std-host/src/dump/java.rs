//! Text as Java makes it of bytes: `new String(bytes, UTF_8)`.

use std::borrow::Cow;

/// UTF-8 with U+FFFD in place of what is none.
///
/// Java replaces the longest piece that could still have become a character, as Rust does,
/// but for surrogates, `ED A0..BF 80..BF`: it knows only when it has all three bytes that
/// they are no character, and makes one U+FFFD of what is there of them.
pub(crate) fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    let mut text = String::new();
    // Of a surrogate: how many of its bytes have come, 0 outside of one.
    let mut surrogate = 0;
    for chunk in bytes.utf8_chunks() {
        let (valid, invalid) = (chunk.valid(), chunk.invalid());
        if invalid.is_empty() && valid.len() == bytes.len() {
            return Cow::Borrowed(valid);
        }
        text.push_str(valid);
        if !valid.is_empty() {
            surrogate = 0;
        }
        surrogate = match (surrogate, invalid) {
            (1, [0xa0..=0xbf]) => 2,
            (2, [0x80..=0xbf]) => 0,
            (_, []) => break,
            _ => {
                text.push(char::REPLACEMENT_CHARACTER);
                usize::from(invalid == [0xed])
            }
        };
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `new String(bytes, UTF_8)` of Java 17 gives, `?` for U+FFFD.
    #[test]
    fn as_java_does() {
        for (bytes, text) in [
            (&b""[..], ""),
            ("a\u{fc}\u{6f22}\u{1f600}".as_bytes(), "a\u{fc}\u{6f22}\u{1f600}"),
            (b"\xed\xa0\x80", "?"),
            (b"\xed\xa0", "?"),
            (b"\xed", "?"),
            (b"a\xed\xbf\xbfb", "a?b"),
            (b"\xed\xa0A", "?A"),
            (b"\xedA\xa0", "?A?"),
            (b"\xed\xa0\x80\x80", "??"),
            (b"\xed\xa0\x80\xed\xb0\x80", "??"),
            (b"\xed\xa0\xed\xa0\x80", "??"),
            (b"\xed\xed\xa0\x80", "??"),
            (b"\xed\xc0\x80", "???"),
            (b"\xe0\x80\x80", "???"),
            (b"\xe1\x80", "?"),
            (b"\xe1\x80A", "?A"),
            (b"\xf0\x90\x80", "?"),
            (b"\xf0\x90A", "?A"),
            (b"\xf0\x80\x80\x80", "????"),
            (b"\xf4\x90\x80\x80", "????"),
            (b"\xf1\x80\x80A", "?A"),
            (b"\xf5\x80", "??"),
            (b"\xc0\x80", "??"),
            (b"\xc3", "?"),
            (b"\xff\xfe", "??"),
            (b"\x80\xbf", "??"),
        ] {
            assert_eq!(utf8(bytes).replace('\u{fffd}', "?"), text, "{bytes:02x?}");
        }
    }
}
