//! The wire format of protobuf: tags and values, one after another. Nothing is copied; lengths are checked against what
//! is there.
//!
//! The messages of errors are those of the code that Kubernetes generates (`generated.pb.go`).

/// What is wrong, as one sentence.
pub type Result<T> = std::result::Result<T, String>;

/// A value as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wire<'a> {
    /// Type 0.
    Varint(u64),
    /// Type 1.
    Fixed64([u8; 8]),
    /// Type 2.
    Bytes(&'a [u8]),
    /// Type 3, a group: no type of Kubernetes has one, so it was skipped.
    Group,
    /// Type 5.
    Fixed32,
}

impl<'a> Wire<'a> {
    /// The value of a field that is a varint.
    ///
    /// # Errors
    /// When it is another value.
    pub fn varint(self, field: &str) -> Result<u64> {
        match self {
            Self::Varint(value) => Ok(value),
            other => Err(other.wrong(field)),
        }
    }

    /// The value of a field that is a double.
    ///
    /// # Errors
    /// When it is another value.
    pub fn double(self, field: &str) -> Result<f64> {
        match self {
            Self::Fixed64(bytes) => Ok(f64::from_le_bytes(bytes)),
            other => Err(other.wrong(field)),
        }
    }

    /// The value of a field that has a length: text, bytes, a message.
    ///
    /// # Errors
    /// When it is another value.
    pub fn bytes(self, field: &str) -> Result<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong(field)),
        }
    }

    /// The value of a text field. What is not UTF-8 is replaced, as Go's JSON encoder does.
    ///
    /// # Errors
    /// When it is another value.
    pub fn text(self, field: &str) -> Result<String> {
        self.bytes(field).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn wrong(self, field: &str) -> String {
        let number = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Group => 3,
            Self::Fixed32 => 5,
        };
        format!("proto: wrong wireType = {number} for field {field}")
    }
}

/// Reads the fields of one message.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field: its number and its value. `None` at the end.
    ///
    /// # Errors
    /// What is no field.
    pub fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>> {
        if self.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire = match tag & 7 {
            3 => {
                self.skip_group()?;
                Wire::Group
            }
            4 => return Err("proto: wiretype end group for non-group".to_owned()),
            kind => self.value(kind)?,
        };
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..=0x7fff_ffff) => Ok(Some((number, wire))),
            _ => Err(format!("proto: illegal tag {} (wire type {tag})", tag >> 3)),
        }
    }

    /// Whether all was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A number without a tag.
    ///
    /// # Errors
    /// When it does not end, or is too large.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("proto: integer overflow".to_owned())
    }

    /// A value that is no group.
    fn value(&mut self, kind: u64) -> Result<Wire<'a>> {
        match kind {
            0 => self.varint().map(Wire::Varint),
            1 => self.take().map(Wire::Fixed64),
            2 => {
                let length = i64::try_from(self.varint()?)
                    .map_err(|_| "proto: negative length found during unmarshaling".to_owned())?;
                let (bytes, rest) = usize::try_from(length)
                    .ok()
                    .and_then(|length| self.rest.split_at_checked(length))
                    .ok_or_else(unexpected_end)?;
                self.rest = rest;
                Ok(Wire::Bytes(bytes))
            }
            5 => self.take::<4>().map(|_| Wire::Fixed32),
            other => Err(format!("proto: illegal wireType {other}")),
        }
    }

    /// Goes to the end of a group that has begun, with the groups in it; it takes no stack.
    fn skip_group(&mut self) -> Result<()> {
        let mut open = 1_usize;
        while open > 0 {
            match self.varint()? & 7 {
                3 => open += 1,
                4 => open -= 1,
                kind => {
                    self.value(kind)?;
                }
            }
        }
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(unexpected_end)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

fn unexpected_end() -> String {
    "unexpected EOF".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, Wire<'_>)>> {
        let mut reader = Reader::new(bytes);
        std::iter::from_fn(|| reader.field().transpose()).collect()
    }

    #[test]
    fn every_wire_type_is_read() {
        let bytes =
            [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x19, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x25, 1, 2, 3, 4];
        let read = all(&bytes).unwrap();
        assert_eq!(read[0], (1, Wire::Varint(150)));
        assert_eq!(read[1], (2, Wire::Bytes(b"hi")));
        assert_eq!(read[2].1.double("x"), Ok(1.0));
        assert_eq!(read[3], (4, Wire::Fixed32));
    }

    #[test]
    fn a_group_is_skipped_with_the_groups_in_it() {
        let bytes = [0x0b, 0x13, 0x08, 1, 0x14, 0x0c, 0x10, 7];
        assert_eq!(all(&bytes), Ok(vec![(1, Wire::Group), (2, Wire::Varint(7))]));
        let deep = [0x0b].repeat(1_000_000);
        assert_eq!(all(&deep), Err("unexpected EOF".to_owned()));
    }

    #[test]
    fn what_is_broken_is_told_in_the_words_of_go() {
        for (bytes, told) in [
            (&[0x0a][..], "unexpected EOF"),
            (&[0x0a, 5, 1], "unexpected EOF"),
            (
                &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
                "proto: negative length found during unmarshaling",
            ),
            (&[0xff; 11], "proto: integer overflow"),
            (&[0x09, 1], "unexpected EOF"),
            (&[0x0c], "proto: wiretype end group for non-group"),
            (&[0x0e], "proto: illegal wireType 6"),
            (&[0x00, 0x00], "proto: illegal tag 0 (wire type 0)"),
        ] {
            assert_eq!(all(bytes), Err(told.to_owned()), "{bytes:?}");
        }
        assert_eq!(Wire::Varint(1).text("name"), Err("proto: wrong wireType = 0 for field name".to_owned()));
    }
}
