//! Where the last lines of a file begin.

use std::io::{self, Read, Seek, SeekFrom};

const BLOCK: u64 = 16 << 10;

/// Where the last `lines` lines begin; a last line without an end is one more (the kubelet's `findTailLineStartIndex`).
pub(super) fn start(file: &mut (impl Read + Seek), lines: u64) -> io::Result<u64> {
    let mut right = file.seek(SeekFrom::End(0))?;
    let mut ends = 0;
    let mut block = Vec::new();
    while right > 0 {
        let left = right.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(left))?;
        block.clear();
        file.by_ref().take(right - left).read_to_end(&mut block)?;
        for (index, _) in block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            if ends == lines {
                return Ok(left + index as u64 + 1);
            }
            ends += 1;
        }
        right = left;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_without_end_is_one_more() {
        assert_eq!(start(&mut Cursor::new("a\nb\nc"), 1).unwrap(), 2);
        assert_eq!(start(&mut Cursor::new("a\nb\n"), 1).unwrap(), 2);
        assert_eq!(start(&mut Cursor::new("a\nb\n"), 0).unwrap(), 4);
        assert_eq!(start(&mut Cursor::new("a\nb\n"), 9).unwrap(), 0);
        assert_eq!(start(&mut Cursor::new(""), 0).unwrap(), 0);
    }

    proptest! {
        #[test]
        fn as_many_line_ends_follow_as_were_asked_for(
            lengths in proptest::collection::vec(0usize..9000, 0..12),
            lines in 0u64..14,
        ) {
            let text: String = lengths.iter().map(|length| "x".repeat(*length) + "\n").collect();
            let start = usize::try_from(start(&mut Cursor::new(&text), lines).unwrap()).unwrap();
            let rest = &text[start..];
            prop_assert_eq!(rest.lines().count() as u64, lines.min(lengths.len() as u64));
            prop_assert!(start == 0 || text[..start].ends_with('\n'));
        }
    }
}
