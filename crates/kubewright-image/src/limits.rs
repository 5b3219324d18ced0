//! How much of this machine an image may take.

/// How much of this machine one archive, and one image unpacked, may take: an archive of some kilobytes can hold endless
/// zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many files, folders and links.
    pub entries: u64,
    /// How many bytes, uncompressed.
    pub bytes: u64,
}

impl Default for Limits {
    /// A million entries and 32 GiB: several times what the largest images in use have.
    fn default() -> Self {
        Self { entries: 1_000_000, bytes: 32 << 30 }
    }
}
