//! Which part of a kind a controller looks at, and keeps.

use std::{any::type_name, collections::BTreeSet, sync::Arc};

use kube::core::Selector;

use super::{Controller, Last};
use crate::{
    Index, Object,
    cache::{Project, Reach, ScopeRequest},
    metrics::ObjectGauge,
};

impl Controller {
    /// Watches, and keeps in the cache, only those objects of the last added kind that a field selector names (such as
    /// `metadata.name=settings`): others are "not there", and must not be written through a [`crate::Context`].
    /// Controllers of one manager share a cache, so they must agree on it.
    #[must_use]
    pub fn selecting(self, fields: &str) -> Self {
        self.asked("a field selector", |asked| fields.clone_into(&mut asked.fields))
    }

    /// As [`Controller::selecting`], by labels: `Expression::Equal("app".into(), "web".into())`, or any
    /// [`Selector`]. A write that takes an object out of the selection is not seen in the cache before the watch tells of it.
    #[must_use]
    pub fn labelled(self, labels: impl Into<Selector>) -> Self {
        self.asked("a label selector", |asked| asked.labels = labels.into())
    }

    /// Watches the last added kind in these namespaces, with a watch for each, whatever the manager's are
    /// ([`crate::Manager::watch_namespaces`]). To write in others is possible, and not seen in the cache.
    #[must_use]
    pub fn in_namespaces<N: Into<String>>(self, namespaces: impl IntoIterator<Item = N>) -> Self {
        let namespaces: BTreeSet<String> = namespaces.into_iter().map(Into::into).collect();
        let is_empty = namespaces.is_empty();
        let reach = Some(Reach::In(namespaces));
        let mut this = self.asked("a list of namespaces", |asked| asked.reach = reach);
        if is_empty {
            this.mistakes.push("in_namespaces() names none: name some, or use in_all_namespaces()".into());
        }
        this
    }

    /// Watches the last added kind in all namespaces, whatever the manager's are: cluster-wide, with the memory and the
    /// ClusterRole that this takes.
    #[must_use]
    pub fn in_all_namespaces(self) -> Self {
        self.asked("a list of namespaces", |asked| asked.reach = Some(Reach::Everywhere))
    }

    /// Keeps only a part of each object of the last added kind in the cache: `project` takes away what nobody reads.
    ///
    /// **What was taken away looks as if it were not there.** To write such an object back would erase it on the server, so
    /// that [`crate::Context::update`], `update_status` and `ensure` refuse the kind: patch or apply what changes instead. It holds
    /// for every controller of the manager; declare it on the first one that looks at the kind. Name, namespace, uid, resource
    /// version and owner references must stay.
    #[must_use]
    pub fn projected<K: Object>(mut self, project: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        let project: Project<K> = Arc::new(project);
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => {
                if !kind.project(Box::new(project)) {
                    let mistake =
                        format!("a projection of {} follows a source of another kind", type_name::<K>());
                    self.mistakes.push(mistake);
                }
            }
            _ => self.mistakes.push("a projection comes before any kind".into()),
        }
        self
    }

    /// Keeps the objects of the last added kind as values of their type, ready to read. For a kind of many objects that are all read
    /// again and again. Otherwise the cache keeps compressed JSON, in a tenth of the room of a Pod and a third of that of a ConfigMap, and
    /// decodes an object that was not changed or read lately when it is read, in microseconds; of a kind of a few hundred objects all stay values. It holds
    /// for every controller of the manager; declare it on the first one that looks at the kind.
    #[must_use]
    pub fn as_values(mut self) -> Self {
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => kind.keep_values(),
            _ => self.mistakes.push("as_values comes before any kind".into()),
        }
        self
    }

    /// Tells a number of each object of the last added kind as a metric: a gauge called `name` with this `help`, and the labels
    /// `namespace` and `name`. Its series comes and goes with the object, and with what `value` says: `None` for no series. Of 2000
    /// objects at most. It must not block.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::Controller;
    /// # fn example(controller: Controller) -> Controller {
    /// controller.for_kind::<Deployment>().measured("web_replicas", "Replicas that are ready", |deployment: &Deployment| {
    ///     deployment.status.as_ref()?.ready_replicas.map(f64::from)
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn measured<K: Object>(
        mut self,
        name: impl Into<String>,
        help: impl Into<String>,
        value: impl Fn(&K) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        let gauge = ObjectGauge::new(name.into(), help.into(), value);
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => {
                if !kind.measure(Box::new(gauge)) {
                    let mistake =
                        format!("a metric of {} follows a source of another kind", type_name::<K>());
                    self.mistakes.push(mistake);
                }
            }
            _ => self.mistakes.push("a metric of objects comes before any kind".into()),
        }
        self
    }

    /// Keeps an index of the last added kind up to date.
    #[must_use]
    pub fn indexed<K: Object>(mut self, index: &Index<K>) -> Self {
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => {
                if !kind.index(index) {
                    let mistake =
                        format!("an index of {} follows a source of another kind", type_name::<K>());
                    self.mistakes.push(mistake);
                }
            }
            _ => self.mistakes.push("an index comes before any kind".into()),
        }
        self
    }

    fn asked(mut self, what: &str, ask: impl FnOnce(&mut ScopeRequest)) -> Self {
        match (&self.last, self.kinds.last_mut()) {
            (Last::Kind, Some(kind)) => ask(kind.asked()),
            _ => self.mistakes.push(format!("{what} comes before any kind")),
        }
        self
    }
}
