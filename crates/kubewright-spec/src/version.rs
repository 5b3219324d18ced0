//! The versions, and their tables.

use std::fmt;
use std::str::FromStr;

/// A minor version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// v1.35.
    V1_35,
    /// v1.36.
    V1_36,
    /// v1.37.
    V1_37,
}

/// The tables of a version, each as text. Lines that start with `#` say what the others are.
#[derive(Debug)]
pub struct Tables {
    /// `definitions.txt`: a line for each type, its name in OpenAPI documents and its schema as JSON.
    pub definitions: &'static str,
    /// `facts.txt`: a section for each type, how its lists and maps merge, enumerations, defaults.
    pub facts: &'static str,
    /// `fields.txt`: a section for each type, a line for each field ([`crate::fields_of`] reads it).
    pub fields: &'static str,
    /// `structs.txt`: a section for each internal struct, a line for each field ([`crate::struct_fields`] reads it).
    pub structs: &'static str,
    /// `tags.txt`: the tags of declarative validation.
    pub tags: &'static str,
    /// `resources.txt`: a section for each group and version, a line for each resource, in the order of discovery.
    pub resources: &'static str,
    /// `columns.txt`: a section for each resource, a line for each column of its table.
    pub columns: &'static str,
    /// `roles.txt`: a line for each RBAC object of a new cluster.
    pub roles: &'static str,
    /// `gates.txt`: a line for each feature gate, its stage and default.
    pub gates: &'static str,
}

macro_rules! tables {
    ($folder:literal) => {
        Tables {
            definitions: include_str!(concat!("../spec/", $folder, "/definitions.txt")),
            facts: include_str!(concat!("../spec/", $folder, "/facts.txt")),
            fields: include_str!(concat!("../spec/", $folder, "/fields.txt")),
            structs: include_str!(concat!("../spec/", $folder, "/structs.txt")),
            tags: include_str!(concat!("../spec/", $folder, "/tags.txt")),
            resources: include_str!(concat!("../spec/", $folder, "/resources.txt")),
            columns: include_str!(concat!("../spec/", $folder, "/columns.txt")),
            roles: include_str!(concat!("../spec/", $folder, "/roles.txt")),
            gates: include_str!(concat!("../spec/", $folder, "/gates.txt")),
        }
    };
}

impl Version {
    /// All of them, the oldest first.
    pub const ALL: [Self; 3] = [Self::V1_35, Self::V1_36, Self::V1_37];

    /// The version that is served where no other is asked for: the newest.
    pub const DEFAULT: Self = Self::V1_37;

    /// Its tables.
    #[must_use]
    pub fn tables(self) -> &'static Tables {
        match self {
            Self::V1_35 => const { &tables!("v1.35") },
            Self::V1_36 => const { &tables!("v1.36") },
            Self::V1_37 => const { &tables!("v1.37") },
        }
    }

    /// The number after the dot: 36 of v1.36.
    #[must_use]
    pub const fn minor(self) -> u32 {
        match self {
            Self::V1_35 => 35,
            Self::V1_36 => 36,
            Self::V1_37 => 37,
        }
    }

    /// The release that the tables were made from, such as `1.36.3`: what `/version` says.
    #[must_use]
    pub const fn release(self) -> &'static str {
        match self {
            Self::V1_35 => "1.35.4",
            Self::V1_36 => "1.36.3",
            Self::V1_37 => "1.37.2",
        }
    }
}

impl Default for Version {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// `1.36`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor())
    }
}

/// Takes `1.36`, `v1.36` and any release of it, such as `1.36.1`.
impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix('v').unwrap_or(text);
        let mut parts = number.split('.');
        let (major, minor, patch) = (parts.next(), parts.next(), parts.next());
        let is_patch = patch.is_none_or(|patch| patch.parse::<u32>().is_ok()) && parts.next().is_none();
        let minor = minor.filter(|_| major == Some("1") && is_patch).and_then(|minor| minor.parse().ok());
        Self::ALL.into_iter().find(|version| Some(version.minor()) == minor).ok_or_else(|| {
            let known = Self::ALL.map(|version| version.to_string()).join(", ");
            format!("Kubernetes version {text:?} is not supported; supported are {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_with_and_without_its_patch() {
        for text in ["1.36", "v1.36", "1.36.3", "v1.36.0"] {
            assert_eq!(text.parse(), Ok(Version::V1_36), "{text}");
        }
        for bad in ["", "1", "36", "1.34", "2.36", "1.36.x", "1.36.1.1", "1.36-rc.1"] {
            let told = bad.parse::<Version>().unwrap_err();
            assert!(told.contains("supported are 1.35, 1.36, 1.37"), "{told}");
        }
    }

    #[test]
    fn each_table_names_the_release_that_it_was_made_from() {
        for version in Version::ALL {
            let tables = version.tables();
            let all = [
                tables.definitions,
                tables.facts,
                tables.fields,
                tables.structs,
                tables.tags,
                tables.resources,
                tables.columns,
                tables.roles,
                tables.gates,
            ];
            let head = format!("# Kubernetes v{}: ", version.release());
            for table in all {
                assert!(table.starts_with(&head), "{table:.80}");
            }
        }
    }
}
