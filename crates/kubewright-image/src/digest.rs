//! What content is called: by its sha256.

use std::{fmt, str::FromStr};

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize, de};

/// The sha256 of some content, as OCI writes it: `sha256:` and 64 hexadecimal digits.
///
/// OCI's `sha512:` is not known here: no builder writes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// What text has to be to be a [`Digest`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no digest: it is to be \"sha256:\" and 64 hexadecimal digits")]
pub struct NoDigest(String);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher.finish()
    }

    /// The 64 digits, without the algorithm.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads 64 digits without the algorithm.
    pub(crate) fn from_hex(hex: &str) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let pairs = hex.as_bytes().as_chunks::<2>();
        let mut bytes = [0; 32];
        if hex.len() != 64 {
            return None;
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs.0) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        let hex = text.strip_prefix("sha256:");
        hex.and_then(Self::from_hex).ok_or_else(|| NoDigest(text.chars().take(100).collect()))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Makes a [`Digest`] of content that comes in pieces.
pub(crate) struct Hasher(Context);

impl Hasher {
    pub(crate) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        Digest(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_NOTHING: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_digest_of_nothing_is_the_known_one() {
        assert_eq!(Digest::of(b"").to_string(), OF_NOTHING);
        assert_eq!(OF_NOTHING.parse(), Ok(Digest::of(b"")));
        assert_eq!(format!("sha256:{}", Digest::of(b"").hex()), OF_NOTHING);
    }

    #[test]
    fn what_is_no_digest_could_be_a_path_and_is_refused() {
        let hex = &OF_NOTHING[7..];
        for bad in [
            "",
            "sha256:",
            hex,
            &format!("sha512:{hex}"),
            &format!("sha256:{}", &hex[1..]),
            &format!("sha256:{hex}0"),
            &format!("sha256:{}", hex.to_uppercase()),
            "sha256:../../../../../../../../../../../../../../../../../../etc/passwd",
        ] {
            assert_eq!(bad.parse::<Digest>(), Err(NoDigest(bad.to_owned())));
        }
    }
}
