//! What all lists of a namespace together say.

use jiff::Timestamp;

use crate::{DenyBy, Enforcement, Exemptions, Existing, WhiteListSpec, plan::Police, rules::Rules};

/// Namespaces without which a cluster does not work: policing them sows civil war in it.
pub(crate) const SYSTEM: [&str; 2] = ["kube-system", "kube-node-lease"];

/// One list, wherever it is from.
#[derive(Clone, Debug)]
pub(crate) struct List<'a> {
    /// Its kind, namespace and name.
    pub(crate) title: String,
    pub(crate) spec: &'a WhiteListSpec,
    pub(crate) created: Option<Timestamp>,
    /// Whether it is enforced in the namespace; one that is not only allows.
    pub(crate) is_enforced: bool,
}

/// Why nothing is done about violations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Suspended {
    /// The namespace is exempt.
    SystemNamespace,
    /// A list cannot be understood.
    InvalidRules,
}

/// What holds in a namespace: the strictest enforcement of its lists, with what those lists that ask for it say besides.
#[derive(Clone, Debug)]
pub(crate) struct Regime {
    /// The lists that are enforced, by title; none: nobody judges.
    titles: Vec<String>,
    pub(crate) specs: Vec<WhiteListSpec>,
    pub(crate) suspended: Option<Suspended>,
    pub(crate) enforcement: Enforcement,
    pub(crate) existing: Existing,
    pub(crate) deny_by: DenyBy,
    pub(crate) may_exempt: bool,
    pub(crate) max_deletions: u32,
    /// Since when the strictest of the lists is there.
    pub(crate) since: Option<Timestamp>,
}

impl Regime {
    /// The regime of `lists`, whose rules were `compiled`, in `namespace`.
    pub(crate) fn new(
        lists: &[List<'_>],
        compiled: &[Result<Rules, Vec<String>>],
        namespace: &str,
        police: &Police,
    ) -> Self {
        let enforced: Vec<&List<'_>> = lists.iter().filter(|list| list.is_enforced).collect();
        let enforcement =
            enforced.iter().map(|list| list.spec.enforcement).max().unwrap_or(Enforcement::Audit);
        let strictest = || enforced.iter().filter(|list| list.spec.enforcement == enforcement);
        let is_system = SYSTEM.contains(&namespace) || namespace == police.namespace;
        let opted_in = enforced.iter().any(|list| list.spec.enforce_in_system_namespace);
        let suspended = if is_system && !opted_in {
            Some(Suspended::SystemNamespace)
        } else if compiled.iter().any(Result::is_err) {
            Some(Suspended::InvalidRules)
        } else {
            None
        };
        let all_report = strictest().all(|list| list.spec.existing == Existing::Report);
        let all_webhook = strictest().all(|list| list.spec.deny_by == DenyBy::Webhook);
        Self {
            titles: enforced.iter().map(|list| list.title.clone()).collect(),
            specs: lists.iter().map(|list| list.spec.clone()).collect(),
            suspended,
            enforcement,
            existing: if all_report { Existing::Report } else { Existing::Enforce },
            deny_by: if all_webhook { DenyBy::Webhook } else { DenyBy::Policy },
            may_exempt: enforced.iter().all(|list| list.spec.exemptions == Exemptions::Annotated),
            max_deletions: strictest().map(|list| list.spec.max_deletions_per_minute).min().unwrap_or(0),
            since: strictest().filter_map(|list| list.created).min(),
        }
    }

    /// Whether there is a list that is enforced, in a namespace where it may be.
    pub(crate) fn judges_at_all(&self) -> bool {
        !self.titles.is_empty() && self.suspended != Some(Suspended::SystemNamespace)
    }

    /// Whether requests are to be refused.
    pub(crate) fn denies(&self) -> bool {
        self.judges_at_all() && self.suspended.is_none() && self.enforcement == Enforcement::Deny
    }

    /// Whether a policy can tell what is allowed: it knows no versions.
    pub(crate) fn fits_a_policy(&self) -> bool {
        self.specs.iter().flat_map(|spec| &spec.images).all(|allowed| allowed.versions.is_empty())
    }

    /// The lists, for people: `WhiteList default/a or ClusterWhiteList b`.
    pub(crate) fn judges(&self) -> String {
        self.titles.join(" or ")
    }
}
