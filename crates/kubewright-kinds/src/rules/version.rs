//! Which version of Kubernetes the rules are judged by. Rules are plain functions of objects, and most are the same in all versions;
//! one that is not asks here, deep in a pod as well as at the top. Who calls rules says the version ([`Rules::within`](super::Rules::within)),
//! once, around the whole call.

use std::cell::Cell;

use kubewright_spec::Version;

thread_local! {
    static VERSION: Cell<Version> = const { Cell::new(Version::DEFAULT) };
}

/// Puts back what was, also when a rule panics.
struct Before(Version);

impl Drop for Before {
    fn drop(&mut self) {
        VERSION.set(self.0);
    }
}

/// Calls rules, as those of a version.
pub(crate) fn judged_by<T>(version: Version, rules: impl FnOnce() -> T) -> T {
    let _before = Before(VERSION.replace(version));
    rules()
}

/// The version that is judged by.
pub(crate) fn current() -> Version {
    VERSION.get()
}

/// Whether the rules are those of a version or a later one.
pub(crate) fn since(version: Version) -> bool {
    VERSION.get() >= version
}

/// Whether a feature is there by default in the version that is judged by, said by the name of its gate.
pub(crate) fn has_feature(gate: &str) -> bool {
    debug_assert!(kubewright_spec::is_gate(gate), "no version has a gate {gate:?}");
    kubewright_spec::has_feature(VERSION.get(), gate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_judged_by_the_version_of_the_innermost_call() {
        let has = || (since(Version::V1_36), has_feature("HPAScaleToZero"));
        let nested = judged_by(Version::V1_37, || {
            let inner = judged_by(Version::V1_35, has);
            (inner, has())
        });
        assert_eq!(nested, ((false, false), (true, true)));
        assert_eq!(VERSION.get(), Version::DEFAULT);
    }
}
