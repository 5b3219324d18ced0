//! Which fields a write leaves alone (Kubernetes v1.36, `GetResetFields` of `pkg/registry/*/*/strategy.go`).

use kubewright_schema::fields::{Set, named};

/// Fields, each by the names on the way to it.
type Fields = &'static [&'static [&'static str]];

/// The fields that writes to objects of a built-in kind leave alone, by what is written.
#[derive(Clone, Copy, Debug)]
pub struct LeftAlone {
    /// By a write to the object; where status is written apart, it is left alone as well.
    pub main: Fields,
    /// By a write to the status.
    pub status: Fields,
    /// By a write to the approval.
    pub approval: Fields,
    /// By a write to the finalizers.
    pub finalize: Fields,
}

impl LeftAlone {
    /// Of most built-in kinds.
    pub const BUILT_IN: Self =
        Self { main: &[], status: &[&["spec"]], approval: &[], finalize: &[&["status"]] };
}

/// What field ownership has to know of a kind.
#[derive(Clone, Debug, Default)]
pub struct Ownership {
    main: Set,
    status: Set,
    approval: Set,
    finalize: Set,
}

impl Ownership {
    /// Of a built-in kind.
    #[must_use]
    pub fn built_in(left_alone: LeftAlone, has_status: bool) -> Self {
        let main = named(left_alone.main);
        Self {
            main: if has_status { main.union(&named(&[&["status"]])) } else { main },
            status: named(left_alone.status),
            approval: named(left_alone.approval),
            finalize: named(left_alone.finalize),
        }
    }

    /// Of a custom resource.
    #[must_use]
    pub fn custom(has_status: bool) -> Self {
        Self {
            main: if has_status { named(&[&["status"]]) } else { Set::default() },
            status: if has_status { named(&[&["metadata"], &["spec"]]) } else { Set::default() },
            ..Self::default()
        }
    }

    /// The fields that a write to the object (the empty subresource) or to a subresource leaves alone: it can neither own
    /// them nor take them from others.
    #[must_use]
    pub fn left_alone(&self, subresource: &str) -> Option<&Set> {
        match subresource {
            "" => Some(&self.main),
            "status" => Some(&self.status),
            "approval" => Some(&self.approval),
            "finalize" => Some(&self.finalize),
            _ => None,
        }
    }
}
