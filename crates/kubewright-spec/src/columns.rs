//! The columns of tables.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::Version;

/// A column of a resource's table, a line of `columns.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What stands above it.
    pub name: &'static str,
    /// `string`, `integer`, `boolean`, `date`.
    pub kind: &'static str,
    /// What it holds, such as `name`; mostly empty.
    pub format: &'static str,
    /// 0 where it is always shown.
    pub priority: u8,
    /// What the table says of it, with each line break written as `\n`.
    description: &'static str,
}

impl Column {
    /// What the table says of it.
    #[must_use]
    pub fn description(&self) -> String {
        self.description.replace("\\n", "\n")
    }
}

/// The columns of a resource (`deployments`) of a group and version (`apps/v1`); none where it is not served.
pub fn columns_of(
    version: Version,
    api_version: &str,
    resource: &str,
) -> impl Iterator<Item = Column> + use<> {
    let lines = sections(version).get(&*format!("{api_version} {resource}")).copied().unwrap_or_default();
    lines.lines().filter_map(read)
}

fn sections(version: Version) -> &'static BTreeMap<&'static str, &'static str> {
    type Sections = BTreeMap<&'static str, &'static str>;
    static ALL: [OnceLock<Sections>; Version::ALL.len()] = [const { OnceLock::new() }; Version::ALL.len()];
    ALL[version as usize].get_or_init(|| {
        let sections = version.tables().columns.split("\n[").skip(1);
        sections.filter_map(|section| section.split_once("]\n")).collect()
    })
}

fn read(line: &'static str) -> Option<Column> {
    let mut parts = line.splitn(5, '|');
    let mut next = || parts.next();
    let (name, kind, format, priority) = (next()?, next()?, next()?, next()?.parse().ok()?);
    Some(Column { name, kind, format, priority, description: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_the_columns_of_its_version() {
        let names = |version| -> Vec<&str> {
            let columns = columns_of(version, "apiextensions.k8s.io/v1", "customresourcedefinitions");
            columns.map(|column| column.name).collect()
        };
        assert_eq!(names(Version::V1_36), ["Name", "Created At"]);
        assert_eq!(names(Version::V1_37)[..3], ["Name", "Scope", "Versions"]);
        assert_eq!(columns_of(Version::V1_36, "v1", "pod").count(), 0);
    }
}
