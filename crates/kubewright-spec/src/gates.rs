//! Feature gates: what they are by default in a version.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::Version;

/// How far a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// New, and mostly off.
    Alpha,
    /// Mostly on.
    Beta,
    /// There for good; its gate goes some versions later.
    Ga,
    /// On its way out.
    Deprecated,
}

/// A feature gate, a line of `gates.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// How far the feature is.
    pub stage: Stage,
    /// Whether it is on where nobody says otherwise.
    pub is_on: bool,
}

/// A gate as a version has it; none where it has no gate of that name.
#[must_use]
pub fn gate(version: Version, name: &str) -> Option<Gate> {
    gates(version).get(name).copied()
}

/// Whether the feature is there in a version where nobody switches gates. A gate that is gone left its feature as it was in the
/// last version that had it; one that is yet to come has none.
#[must_use]
pub fn has_feature(version: Version, name: &str) -> bool {
    let before = Version::ALL.into_iter().rev().skip_while(|known| *known > version);
    before.into_iter().find_map(|known| gate(known, name)).is_some_and(|gate| gate.is_on)
}

/// Whether any version has a gate of that name.
#[must_use]
pub fn is_gate(name: &str) -> bool {
    Version::ALL.into_iter().any(|version| gate(version, name).is_some())
}

type Gates = BTreeMap<&'static str, Gate>;

fn gates(version: Version) -> &'static Gates {
    static ALL: [OnceLock<Gates>; Version::ALL.len()] = [const { OnceLock::new() }; Version::ALL.len()];
    ALL[version as usize].get_or_init(|| version.tables().gates.lines().filter_map(read).collect())
}

fn read(line: &'static str) -> Option<(&'static str, Gate)> {
    let mut words = line.split(' ');
    let (name, stage, is_on) = (words.next()?, words.next()?, words.next()?);
    let stage = match stage {
        "ALPHA" => Stage::Alpha,
        "BETA" => Stage::Beta,
        "GA" => Stage::Ga,
        "DEPRECATED" => Stage::Deprecated,
        _ => return None,
    };
    Some((name, Gate { stage, is_on: is_on == "on" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_told_as_its_version_has_it() {
        let scale_to_zero = |version| gate(version, "HPAScaleToZero");
        assert_eq!(scale_to_zero(Version::V1_36), Some(Gate { stage: Stage::Alpha, is_on: false }));
        assert_eq!(scale_to_zero(Version::V1_37), Some(Gate { stage: Stage::Beta, is_on: true }));
        assert_eq!(gate(Version::V1_36, "HPAGeneration"), None);
        assert!(is_gate("HPAGeneration") && !is_gate("HPAGenerations") && !is_gate("name"));
    }

    #[test]
    fn a_feature_stays_when_its_gate_goes_and_is_not_there_before_it_comes() {
        assert!(gate(Version::V1_36, "SidecarContainers").is_some_and(|gate| gate.is_on));
        assert_eq!(gate(Version::V1_37, "SidecarContainers"), None);
        assert!(has_feature(Version::V1_37, "SidecarContainers"));
        assert!(
            !has_feature(Version::V1_36, "HPAGeneration") && has_feature(Version::V1_37, "HPAGeneration")
        );
        assert!(!has_feature(Version::V1_35, "StrictIPCIDRValidation"));
        assert!(has_feature(Version::V1_36, "StrictIPCIDRValidation"));
    }

    #[test]
    fn each_line_of_the_table_is_read() {
        for version in Version::ALL {
            let lines = version.tables().gates.lines().filter(|line| !line.starts_with('#')).count();
            assert_eq!(gates(version).len(), lines, "{version}");
        }
    }
}
