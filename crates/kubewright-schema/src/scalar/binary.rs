//! Bytes, which Go's `encoding/json` writes as base64.

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{GeneralPurposeConfig, STANDARD};

/// Go reads bits beyond the last byte as if they were zero.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The text as Go writes it back (without line breaks).
///
/// # Errors
/// Text that is no base64, in the words and with the position of Go's `encoding/base64`.
pub(crate) fn canonical(text: &str) -> Result<String, String> {
    if let Some(at) = mistake(text.as_bytes()) {
        return Err(format!("illegal base64 data at input byte {at}"));
    }
    let dense: String = text.chars().filter(|one| !matches!(one, '\r' | '\n')).collect();
    let bytes = LENIENT.decode(&dense).map_err(|_| "illegal base64 data at input byte 0".to_owned())?;
    Ok(STANDARD.encode(bytes))
}

/// Bytes as Go writes them.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Where Go's decoder stumbles. It reads groups of four and skips line breaks.
fn mistake(text: &[u8]) -> Option<usize> {
    let skip = |mut at: usize| {
        while matches!(text.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        at
    };
    let mut at = 0;
    loop {
        let mut digits = 0;
        while digits < 4 {
            let Some(&byte) = text.get(at) else {
                return (digits > 0).then(|| at - digits);
            };
            at += 1;
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => digits += 1,
                b'\r' | b'\n' => {}
                b'=' if digits < 2 => return Some(at - 1),
                b'=' => {
                    if digits == 2 {
                        at = skip(at);
                        match text.get(at) {
                            None => return Some(text.len()),
                            Some(b'=') => at += 1,
                            Some(_) => return Some(at - 1),
                        }
                    }
                    at = skip(at);
                    return (at < text.len()).then_some(at);
                }
                _ => return Some(at - 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn what_go_accepts_is_accepted() {
        for (given, kept) in
            [("", ""), ("aGk=", "aGk="), ("aG\nk=\n", "aGk="), ("aGl=", "aGk="), ("AA==", "AA==")]
        {
            assert_eq!(canonical(given).as_deref(), Ok(kept), "{given:?}");
        }
    }

    #[test]
    fn mistakes_are_where_go_sees_them() {
        for (given, at) in
            [("***", 0), ("aGk", 0), ("aGk=x", 4), ("a=", 1), ("aG=", 3), ("aG=x", 2), ("aaaaé", 4)]
        {
            assert_eq!(canonical(given), Err(format!("illegal base64 data at input byte {at}")), "{given:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_an_answer(text in ".*") {
            let _ = canonical(&text);
        }

        #[test]
        fn encoded_bytes_stay_as_they_are(bytes: Vec<u8>) {
            use base64::Engine as _;
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            proptest::prop_assert_eq!(canonical(&text), Ok(text));
        }
    }
}
