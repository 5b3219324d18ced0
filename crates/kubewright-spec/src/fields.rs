//! The fields of Go's types: how they are numbered in protobuf, and what JSON makes of those that nobody set.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::Version;

/// A field of a type, a line of `fields.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its number on the wire; 0 where protobuf does not know it.
    pub number: u32,
    /// Its name in JSON; `.` where the fields of its type are fields of this one.
    pub name: &'static str,
    /// Its type, in the words that the head of the table explains.
    pub of: &'static str,
    /// Whether it is a pointer: then zero is not the same as nothing.
    pub is_pointer: bool,
    /// Whether it is written although it is empty: it has no `omitempty`, or is a struct, which that does not omit.
    pub is_always_written: bool,
    /// The name of its type in Go, where it is no struct and has one, or is made of such (`[]v1.FinalizerName`).
    pub named: Option<&'static str>,
}

pub(crate) type Sections = BTreeMap<&'static str, &'static str>;

/// The fields of a type in their order in Go, by the name that messages have (`apps/v1.Deployment`); none of a name that no type has.
pub fn fields_of(version: Version, name: &str) -> impl Iterator<Item = Field> + use<> {
    sections(version).get(name).copied().unwrap_or_default().lines().filter_map(read)
}

/// The names of all types of the table, and their lines.
pub(crate) fn sections(version: Version) -> &'static Sections {
    static ALL: [OnceLock<Sections>; 3] = [const { OnceLock::new() }; 3];
    ALL[version as usize].get_or_init(|| sections_of(version.tables().fields))
}

/// The sections of a table, by what stands in brackets before them.
pub(crate) fn sections_of(table: &'static str) -> Sections {
    let sections = table.split("\n[").skip(1).filter_map(|section| section.split_once(']'));
    sections.map(|(name, lines)| (name, lines.trim())).collect()
}

fn read(line: &'static str) -> Option<Field> {
    let mut words = line.split(' ');
    let (number, name, of) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
    let (of, is_always_written) = of.strip_suffix('!').map_or((of, false), |of| (of, true));
    let (of, is_pointer) = of.strip_suffix('?').map_or((of, false), |of| (of, true));
    Some(Field { number, name, of, is_pointer, is_always_written, named: words.next() })
}

/// All names of types, in their order.
pub fn types(version: Version) -> impl Iterator<Item = &'static str> {
    sections(version).keys().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_a_field() {
        for version in Version::ALL {
            let lines: usize = sections(version).values().map(|lines| lines.lines().count()).sum();
            let read: usize = types(version).map(|name| fields_of(version, name).count()).sum();
            assert!(read == lines && read > 2000, "{version}: {read} of {lines}");
        }
    }

    #[test]
    fn a_field_tells_pointers_and_what_is_always_written() {
        let field = |name: &str| {
            let mut fields = fields_of(Version::V1_36, "apps/v1.DeploymentSpec");
            fields.find(|field| field.name == name).unwrap()
        };
        let replicas = field("replicas");
        assert_eq!((replicas.number, replicas.of, replicas.is_pointer), (1, "int32", true));
        assert!(!replicas.is_always_written && field("template").is_always_written);
        assert!(!field("minReadySeconds").is_pointer);
    }

    #[test]
    fn a_field_tells_the_name_of_its_type_in_go() {
        let named = |of: &str, name: &str| {
            let mut fields = fields_of(Version::V1_36, of);
            fields.find(|field| field.name == name).unwrap().named
        };
        assert_eq!(named("core/v1.NamespaceSpec", "finalizers"), Some("[]v1.FinalizerName"));
        assert_eq!(named("core/v1.ResourceRequirements", "limits"), Some("v1.ResourceList"));
        assert_eq!(named("core/v1.PodSpec", "restartPolicy"), Some("v1.RestartPolicy"));
        assert_eq!(named("core/v1.PodSpec", "nodeName"), None);
    }

    #[test]
    fn a_number_on_the_wire_means_the_same_in_all_versions() {
        let kind = |field: Field| (field.number, field.name, field.of);
        for (old, new) in [(Version::V1_35, Version::V1_36), (Version::V1_36, Version::V1_37)] {
            for name in types(old) {
                for field in fields_of(old, name).filter(|field| field.number > 0) {
                    let same = fields_of(new, name).find(|one| one.number == field.number);
                    assert!(
                        same.is_none_or(|same| kind(same) == kind(field)),
                        "{name}: {field:?} and {same:?}"
                    );
                }
            }
        }
    }
}
