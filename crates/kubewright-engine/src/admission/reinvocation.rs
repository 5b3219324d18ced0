//! The second round of mutation (`k8s.io/apiserver/pkg/admission/reinvocation.go`): where a webhook or a policy has
//! changed an object, everybody is asked once more who wants to be (`reinvocationPolicy: IfNeeded`) and has not seen the
//! change.

use std::collections::BTreeSet;

use serde_json::Value;

/// What one mutating plugin remembers between the two rounds; `K` names whom it asks.
pub(super) struct Round<K> {
    is_second: bool,
    /// The object as the plugin left it in the first round.
    left: Option<Value>,
    /// Who was asked, wants to be asked again, and has seen every change so far.
    up_to_date: BTreeSet<K>,
    /// Who is to be asked again.
    outdated: BTreeSet<K>,
    changed: bool,
}

impl<K> Default for Round<K> {
    fn default() -> Self {
        Self {
            is_second: false,
            left: None,
            up_to_date: BTreeSet::new(),
            outdated: BTreeSet::new(),
            changed: false,
        }
    }
}

impl<K: Ord> Round<K> {
    /// Whether something was changed, so that there has to be a second round.
    pub(super) fn has_changed(&self) -> bool {
        self.changed
    }

    /// The second round.
    pub(super) fn again(&mut self) {
        self.is_second = true;
    }

    /// The plugin begins: what the others have changed since it ended is new to everybody.
    pub(super) fn begin(&mut self, object: Option<&Value>) {
        if self.is_second && self.left.as_ref() != object {
            self.outdated.append(&mut self.up_to_date);
        }
    }

    /// Whether this one is asked.
    pub(super) fn includes(&self, who: &K) -> bool {
        !self.is_second || self.outdated.contains(who)
    }

    /// Somebody was asked: `who` if they want to be asked again. A change is new to all who were asked before.
    pub(super) fn done(&mut self, who: Option<K>, changed: bool) {
        if changed {
            self.outdated.append(&mut self.up_to_date);
            self.changed = true;
        }
        self.up_to_date.extend(who);
    }

    /// The plugin ends. Only where somebody may be asked again the object is remembered.
    pub(super) fn end(&mut self, object: Option<&Value>) {
        if !self.up_to_date.is_empty() {
            self.left = object.cloned();
        }
    }
}
