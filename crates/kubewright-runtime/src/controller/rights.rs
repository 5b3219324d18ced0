//! The rights that a controller works with.

use k8s_openapi::api::{core, events};

use super::Controller;
use crate::{
    Object,
    events::EventApi,
    rbac::{ResourceAttributes, Rights, Verb},
    source::{KindSource, Place},
};

impl Controller {
    /// Declares what it does with objects of a kind, for its [rights](Controller::rights).
    #[must_use]
    pub fn writes<K: Object>(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.writes.add::<K>(verbs);
        self
    }

    /// Declares what it does with a part of objects of a kind, such as `status`, for its [rights](Controller::rights).
    #[must_use]
    pub fn writes_subresource<K: Object>(
        mut self,
        subresource: &str,
        verbs: impl IntoIterator<Item = Verb>,
    ) -> Self {
        self.writes.add_subresource::<K>(subresource, verbs);
        self
    }

    /// Declares that it writes the status of objects of a kind, for its [rights](Controller::rights): what
    /// [`Context::status`](crate::Context::status) takes.
    #[must_use]
    pub fn writes_status<K: Object>(self) -> Self {
        self.writes_subresource::<K>("status", [Verb::Patch])
    }

    /// Declares that it guards objects of a kind with a finalizer, for its [rights](Controller::rights): what
    /// [`Context::guard`](crate::Context::guard) takes.
    #[must_use]
    pub fn guards<K: Object>(self) -> Self {
        self.may(|rights| rights.guarding::<K>())
    }

    /// Declares what it does with objects of a kind in each further cluster ([`Context::in_cluster`](crate::Context::in_cluster)), for its
    /// [rights there](Controller::rights_in_clusters).
    #[must_use]
    pub fn writes_in_each<K: Object>(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.writes_in_each.add::<K>(verbs);
        self
    }

    /// Declares rights that its reconciles take for anything else: to [watch](Rights::watching) a kind from a reconcile, to
    /// read past the cache, to scale, to guard, to run commands in containers, or what a [client](crate::Context::client)
    /// is used for.
    ///
    /// ```
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
    /// # use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
    /// # struct Rollout;
    /// # impl Reconciler for Rollout {
    /// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
    /// # }
    /// let controller = Controller::new("rollout", Rollout)
    ///     .for_kind::<Deployment>()
    ///     .may(|rights| rights.scaling::<Deployment>().live_reads::<Secret>());
    /// ```
    #[must_use]
    pub fn may(mut self, declare: impl FnOnce(&mut Rights) -> &mut Rights) -> Self {
        declare(&mut self.writes);
        self
    }

    /// The least rights that it works with: to list and watch the kinds that it looks at (and to get those that it writes
    /// and the one that owns others: whether they are still there is asked, where the watch cannot tell), what it declared to
    /// [write](Controller::writes) and to [do else](Controller::may), to [show errors](Controller::on_error), and to record events.
    #[must_use]
    pub fn rights(&self) -> Rights {
        if self.in_each_cluster { Rights::default() } else { self.rights_at(false) }
    }

    /// The same in each further cluster.
    #[must_use]
    pub fn rights_in_clusters(&self) -> Rights {
        if self.in_each_cluster {
            return self.rights_at(true);
        }
        let mut rights = self.writes_in_each.clone();
        for attributes in self.attributes(true) {
            let written =
                self.writes_in_each.concern(&attributes, &[Verb::Create, Verb::Patch, Verb::Update]);
            let get: &[Verb] = if written { &[Verb::Get] } else { &[] };
            rights.imply(attributes, [Verb::List, Verb::Watch].iter().chain(get).copied());
        }
        rights
    }

    /// What it reads in each further cluster, or in the manager's own.
    fn attributes(&self, in_each: bool) -> impl Iterator<Item = ResourceAttributes> {
        let is_in_each =
            move |kind: &dyn KindSource| self.in_each_cluster || matches!(kind.place(), Place::Members);
        let kinds = self.kinds.iter().filter(move |kind| is_in_each(&***kind) == in_each);
        kinds.filter_map(|kind| kind.attributes())
    }

    fn rights_at(&self, in_each: bool) -> Rights {
        let mut rights = self.writes.clone();
        for attributes in self.attributes(in_each) {
            let owns = self.owns_kinds && self.own.as_ref().is_some_and(|own| own.attributes == attributes);
            let written = self.writes.concern(&attributes, &[Verb::Create, Verb::Patch, Verb::Update]);
            let verbs: &[Verb] = if written || owns {
                &[Verb::Get, Verb::List, Verb::Watch]
            } else {
                &[Verb::List, Verb::Watch]
            };
            rights.imply(attributes, verbs.iter().copied());
        }
        if let (true, Some(finalizers)) =
            (self.owns_kinds, self.own.as_ref().map(|own| own.finalizers.clone()))
        {
            // An owner reference that blocks the owner's deletion needs this where the admission plugin
            // OwnerReferencesPermissionEnforcement is on.
            rights.imply(finalizers, [Verb::Update]);
        }
        if let (Some(policy), Some(own)) = (&self.error_policy, &self.own)
            && policy.writes_conditions()
        {
            rights.imply(own.status.clone(), [Verb::Patch]);
        }
        let recorded = match self.events {
            EventApi::Series => ResourceAttributes::of::<events::v1::Event>(None),
            EventApi::Core => ResourceAttributes::of::<core::v1::Event>(None),
        };
        rights.imply(recorded, [Verb::Create, Verb::Patch]);
        rights
    }
}
