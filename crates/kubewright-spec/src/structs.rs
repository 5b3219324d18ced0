//! The internal structs of kube-apiserver that its messages show: their fields have other names and another order than JSON's.

use std::sync::OnceLock;

use crate::Version;
use crate::fields::{Sections, sections_of};

/// A field of an internal struct, a line of `structs.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructField {
    /// Its name in Go; `.` where the fields of its type are fields of this one.
    pub name: &'static str,
    /// Its name in the JSON of the published type.
    pub json: &'static str,
    /// Its type, in the words that the head of the table explains.
    pub of: &'static str,
}

/// The fields of an internal struct (`core.PodSpec`) in their order in Go; none of a name that no struct has.
pub fn struct_fields(version: Version, name: &str) -> impl Iterator<Item = StructField> + use<> {
    sections(version).get(name).copied().unwrap_or_default().lines().filter_map(read)
}

fn sections(version: Version) -> &'static Sections {
    static ALL: [OnceLock<Sections>; 3] = [const { OnceLock::new() }; 3];
    ALL[version as usize].get_or_init(|| sections_of(version.tables().structs))
}

fn read(line: &'static str) -> Option<StructField> {
    let mut words = line.split(' ');
    Some(StructField { name: words.next()?, json: words.next()?, of: words.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_a_field_of_a_known_type() {
        for version in Version::ALL {
            let sections = sections(version);
            assert!(sections.len() > 100, "{version}: {}", sections.len());
            for (name, lines) in sections {
                let fields: Vec<_> = struct_fields(version, name).collect();
                assert_eq!(fields.len(), lines.lines().count(), "{version} {name}");
                for field in fields {
                    let of = field.of.trim_start_matches(['*', '[', ']', '{', '}']);
                    let is_known = !of.contains('.')
                        || sections.contains_key(of)
                        || crate::fields_of(version, of).next().is_some();
                    assert!(is_known, "{version} {name}: {field:?}");
                }
            }
        }
    }

    #[test]
    fn a_field_has_the_name_of_go_and_that_of_json() {
        let mut fields = struct_fields(Version::V1_36, "core.AzureDiskVolumeSource");
        let uri = fields.nth(1).unwrap();
        assert_eq!((uri.name, uri.json, uri.of), ("DataDiskURI", "diskURI", "string"));
        assert_eq!(struct_fields(Version::V1_36, "core.Nothing").count(), 0);
    }
}
