//! What a program is built for, and whether it needs more than the kernel, as the headers of its file say (ELF: `elf(5)`).

use std::{fs, path::Path};

use crate::Error;

/// Program headers: what the kernel maps, where the dynamic section is, which loader is asked for.
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;

/// Entries of the dynamic section: its end, a library, where the names are.
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// How many headers, entries and libraries are looked at; real programs have some dozens.
const MOST: usize = 4096;

/// How long the name of a loader or library may be.
const MAX_NAME: usize = 4096;

/// A program for Linux, by the headers of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What it is built for, in Go's words, such as `amd64`.
    pub architecture: &'static str,
    /// What it needs.
    pub linkage: Linkage,
}

/// What a program needs to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// Nothing but the kernel; it may be position-independent (`static-pie`).
    Static,
    /// A loader, libraries, or both.
    Dynamic {
        /// The loader that the kernel starts, such as `/lib64/ld-linux-x86-64.so.2`.
        interpreter: Option<String>,
        /// The libraries, such as `libc.so.6`.
        libraries: Vec<String>,
    },
}

impl Program {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no program for Linux on a machine that has a name here.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(Error::io("read", path))?;
        Self::of(&bytes).ok_or_else(|| {
            Error::archive(format!("{} is no program for Linux: it is not in the ELF format", path.display()))
        })
    }

    /// Reads the headers of a program; `None` where it is none.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let elf = Elf::new(bytes)?;
        let architecture = elf.architecture()?;
        let segments = elf.segments()?;
        let of_kind = |kind| segments.iter().find(|segment: &&Segment| segment.kind == kind);
        let interpreter = of_kind(PT_INTERP).map(|segment| elf.text(segment.offset).unwrap_or_default());
        let libraries =
            of_kind(PT_DYNAMIC).map_or_else(Vec::new, |dynamic| elf.libraries(dynamic, &segments));
        let linkage = match interpreter.is_none() && libraries.is_empty() {
            true => Linkage::Static,
            false => Linkage::Dynamic { interpreter, libraries },
        };
        Some(Self { architecture, linkage })
    }
}

/// A program header.
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

/// The bytes of a file in ELF's format, read as its first ones say.
struct Elf<'a> {
    bytes: &'a [u8],
    wide: bool,
    little: bool,
}

impl<'a> Elf<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let [0x7f, b'E', b'L', b'F', class @ (1 | 2), data @ (1 | 2), ..] = *bytes else { return None };
        Some(Self { bytes, wide: class == 2, little: data == 1 })
    }

    /// The number of `size` bytes at `offset`.
    fn number(&self, offset: u64, size: u64) -> Option<u64> {
        let start = usize::try_from(offset).ok()?;
        let bytes = self.bytes.get(start..start.checked_add(usize::try_from(size).ok()?)?)?;
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    }

    /// How long an address is in the file.
    fn word(&self) -> u64 {
        if self.wide { 8 } else { 4 }
    }

    /// `e_machine`, in Go's words.
    fn architecture(&self) -> Option<&'static str> {
        Some(match (self.number(18, 2)?, self.wide, self.little) {
            (3, false, true) => "386",
            (21, true, true) => "ppc64le",
            (21, true, false) => "ppc64",
            (22, true, false) => "s390x",
            (40, false, true) => "arm",
            (62, true, true) => "amd64",
            (183, true, true) => "arm64",
            (243, true, true) => "riscv64",
            (258, true, true) => "loong64",
            _ => return None,
        })
    }

    fn segments(&self) -> Option<Vec<Segment>> {
        let (table, size, count) = match self.wide {
            true => (self.number(32, 8)?, self.number(54, 2)?, self.number(56, 2)?),
            false => (self.number(28, 4)?, self.number(42, 2)?, self.number(44, 2)?),
        };
        // kind, flags, offset, address, physical address, size; the flags are later in narrow ones.
        let (offset, address, length) = if self.wide { (8, 16, 32) } else { (4, 8, 16) };
        let segment = |index: u64| {
            let at = table.checked_add(index.checked_mul(size)?)?;
            let field = |field| self.number(at.checked_add(field)?, self.word());
            Some(Segment {
                kind: self.number(at, 4)?,
                offset: field(offset)?,
                address: field(address)?,
                size: field(length)?,
            })
        };
        (0..count).take(MOST).map(segment).collect()
    }

    /// The names of the libraries in a dynamic section.
    fn libraries(&self, dynamic: &Segment, segments: &[Segment]) -> Vec<String> {
        let entry = |index: u64| {
            let at = dynamic.offset.checked_add(index * 2 * self.word())?;
            Some((self.number(at, self.word())?, self.number(at.checked_add(self.word())?, self.word())?))
        };
        let most = dynamic.size / (2 * self.word());
        let entries = (0..most.min(MOST as u64)).map_while(entry).take_while(|(tag, _)| *tag != DT_NULL);
        let entries: Vec<(u64, u64)> = entries.collect();
        let names = entries.iter().find(|(tag, _)| *tag == DT_STRTAB);
        let names = names.and_then(|(_, address)| file_offset(*address, segments));
        let needed = entries.iter().filter(|(tag, _)| *tag == DT_NEEDED);
        let name = |name: &u64| self.text(names?.checked_add(*name)?);
        needed.map(|(_, at)| name(at).unwrap_or_else(|| "a library".to_owned())).collect()
    }

    /// The text at an offset, up to the zero behind it.
    fn text(&self, offset: u64) -> Option<String> {
        let rest = self.bytes.get(usize::try_from(offset).ok()?..)?;
        let end = rest.iter().take(MAX_NAME).position(|byte| *byte == 0)?;
        Some(crate::error::one_line(&String::from_utf8_lossy(&rest[..end])))
    }
}

/// Where in the file is what is mapped to an address.
fn file_offset(address: u64, segments: &[Segment]) -> Option<u64> {
    let loaded = segments.iter().filter(|segment| segment.kind == PT_LOAD);
    let mut offsets = loaded.filter_map(|segment| {
        let within = address.checked_sub(segment.address).filter(|within| *within < segment.size)?;
        segment.offset.checked_add(within)
    });
    offsets.next()
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A program of 64 bits with these segments (kind, content), each mapped where it is in the file.
    fn program(segments: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        bytes[18] = 62;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = u8::try_from(segments.len()).expect("some segments");
        let mut offset = 64 + 56 * segments.len() as u64;
        for (kind, content) in segments {
            let size = content.len() as u64;
            let header = [*kind, offset, offset, offset, size, size, 1];
            bytes.extend(header.iter().flat_map(|number| number.to_le_bytes()));
            offset += size;
        }
        bytes.extend(segments.iter().flat_map(|(_, content)| content.clone()));
        bytes
    }

    /// A small program for this machine, which is static.
    pub(crate) fn program_for_here() -> Vec<u8> {
        let mut bytes = program(&[(PT_LOAD, vec![7; 4096])]);
        bytes[18] = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        bytes
    }

    fn dynamic(entries: &[(u64, u64)]) -> Vec<u8> {
        entries.iter().flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat()).collect()
    }

    #[test]
    fn a_program_without_loader_and_libraries_is_static_also_when_it_can_be_moved() {
        let plain = program(&[(PT_LOAD, vec![0; 8])]);
        let movable =
            program(&[(PT_LOAD, vec![0; 8]), (PT_DYNAMIC, dynamic(&[(0x6fff_fffb, 1), (DT_NULL, 0)]))]);
        for bytes in [plain, movable] {
            let expected = Program { architecture: "amd64", linkage: Linkage::Static };
            assert_eq!(Program::of(&bytes), Some(expected));
        }
    }

    #[test]
    fn loader_and_libraries_are_named() {
        let names = b"\0libc.so.6\0".to_vec();
        // Behind the header and three program headers.
        let address = 64 + 3 * 56;
        let entries = dynamic(&[(DT_NEEDED, 1), (DT_STRTAB, address), (DT_NULL, 0), (DT_NEEDED, 1)]);
        let bytes =
            program(&[(PT_LOAD, names), (PT_DYNAMIC, entries), (PT_INTERP, b"/lib/ld.so\0".to_vec())]);
        let linkage = Linkage::Dynamic {
            interpreter: Some("/lib/ld.so".to_owned()),
            libraries: vec!["libc.so.6".to_owned()],
        };
        assert_eq!(Program::of(&bytes), Some(Program { architecture: "amd64", linkage }));
    }

    #[test]
    fn a_script_is_no_program() {
        assert_eq!(Program::of(b"#!/bin/sh\n"), None);
        assert_eq!(Program::of(b"\x7fELF"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(noise in proptest::collection::vec(any::<u8>(), 0..600), at in 0_usize..200) {
            let mut bytes = program(&[(PT_LOAD, vec![0; 8]), (PT_DYNAMIC, dynamic(&[(DT_NEEDED, 1), (DT_STRTAB, 9)]))]);
            let end = bytes.len().min(at + noise.len());
            if at < end {
                bytes[at..end].copy_from_slice(&noise[..end - at]);
            }
            let _ = Program::of(&bytes);
        }
    }
}
