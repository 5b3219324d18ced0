//! Which objects of a kind are meant, and lists of them.

use std::{collections::BTreeMap, sync::Arc};

use kube::{
    Client,
    api::ListParams,
    core::{Selector, SelectorExt},
};
use kubewright_meta::selector::{Term, field_terms};
use serde_json::Value;

use super::Context;
use crate::{Cached, Error, Object, endpoint::Endpoint, kind::KindOf, object::to_value};

/// How many objects a page of a live list has (client-go's `pager`).
const PAGE: u32 = 500;

/// Selection of objects of a kind: all of them, but for what is said. What client-go's `ListOptions` are.
///
/// ```
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kubewright_runtime::{Context, Error, ListOptions};
/// use kubewright_runtime::{Expression, Selector};
/// # async fn example(ctx: &Context) -> Result<(), Error> {
/// let web = ListOptions::in_namespace("shop").labels(Selector::from_iter([("app", "web")]));
/// let cached = ctx.list_selected::<Pod>(&web.clone().fields("spec.nodeName=node-1"))?;
/// let newest = ctx.live_list::<Pod>(&web.labels(Expression::Exists("canary".into()))).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListOptions {
    namespace: Option<String>,
    labels: Selector,
    fields: String,
}

impl ListOptions {
    /// All objects.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The objects of one namespace. Of a kind that lives in none, all.
    pub fn in_namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// Those with such labels. Said again, both must hold.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<Selector>) -> Self {
        self.labels.extend(selector.into());
        self
    }

    /// Those with such fields: `status.phase=Running,spec.nodeName!=node-1`. Said again, both must hold. Which fields a live list can select by
    /// is the kind's (a custom kind names them in `selectableFields`); of a cached list they are any, by their path in the JSON of the object.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        if !self.fields.is_empty() && !selector.is_empty() {
            self.fields.push(',');
        }
        self.fields.push_str(selector);
        self
    }

    pub(crate) fn namespace_of<K: Cached>(&self, kind: &KindOf<K>) -> Option<&str> {
        kind.namespace(self.namespace.as_deref())
    }

    /// As parameters of a request.
    pub(crate) fn params(&self) -> Result<ListParams, Error> {
        self.terms()?;
        let labels = (!self.labels.selects_all()).then(|| self.labels.to_string());
        let fields = (!self.fields.is_empty()).then(|| self.fields.clone());
        Ok(ListParams { label_selector: labels, field_selector: fields, ..ListParams::default() })
    }

    /// Those of a namespace's objects that are selected.
    pub(crate) fn select<K: Cached>(&self, mut objects: Vec<Arc<K>>) -> Result<Vec<Arc<K>>, Error> {
        let (terms, none) = (self.terms()?, BTreeMap::new());
        objects.retain(|object| self.labels.matches(object.meta().labels.as_ref().unwrap_or(&none)));
        if terms.is_empty() {
            return Ok(objects);
        }
        let mut selected = Vec::new();
        for object in objects {
            let fields = to_value(&*object)?;
            if terms.iter().all(|term| holds(term, &fields)) {
                selected.push(object);
            }
        }
        Ok(selected)
    }

    /// Those that the API server has, in pages.
    pub(crate) async fn live<K: Cached>(&self, client: &Client, kind: &KindOf<K>) -> Result<Vec<K>, Error> {
        let objects: Endpoint<'_, K> = Endpoint::new(client, &kind.kind, self.namespace_of(kind));
        let all = self.params()?;
        let mut params = all.clone().limit(PAGE);
        let mut found = Vec::new();
        loop {
            let page = match objects.list(&params).await {
                Err(kube::Error::Api(status)) if status.code == 410 && params.continue_token.is_some() => {
                    return Ok(objects.list(&all).await?.objects);
                }
                page => page?,
            };
            found.extend(page.objects);
            match page.rest {
                Some(rest) => params.continue_token = Some(rest),
                None => return Ok(found),
            }
        }
    }

    fn terms(&self) -> Result<Vec<Term>, Error> {
        let wrong = || Error::terminal(format!("{:?} is no field selector", self.fields));
        field_terms(&self.fields).ok_or_else(wrong)
    }
}

/// Whether a field of an object has the value; one that is not there has the empty one.
fn holds(term: &Term, object: &Value) -> bool {
    let field = term.field.split('.').try_fold(object, |value, field| value.get(field));
    let is_it = match field {
        None | Some(Value::Null) => term.value.is_empty(),
        Some(Value::String(text)) => *text == term.value,
        Some(other) => {
            let text = other.to_string();
            text == term.value
        }
    };
    is_it == term.equal
}

impl Context {
    /// The objects of a kind that are selected, from the cache, sorted by key. All objects of the namespace are looked at: where there are many,
    /// and few are meant, an [`Index`](crate::Index) finds them.
    ///
    /// # Errors
    /// Selectors that are none.
    ///
    /// # Panics
    /// As [`Context::get`].
    pub fn list_selected<K: Object>(&self, selected: &ListOptions) -> Result<Vec<Arc<K>>, Error> {
        selected.select(self.list(selected.namespace_of::<K>(&KindOf::typed())))
    }

    /// The objects of a kind that are selected, from the API server, in its order: for a kind that is not cached, or where not even the time
    /// that a watch takes may be missed. It reads pages of 500, of one state; when that is compacted in between, all at once of the newest,
    /// as client-go's pager does. The kind need not be declared. It takes the right to `list`.
    ///
    /// # Errors
    /// What the server refuses; selectors that are none.
    pub async fn live_list<K: Object>(&self, selected: &ListOptions) -> Result<Vec<K>, Error> {
        selected.live(&self.0.client, &KindOf::typed()).await
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::Expression;
    use serde_json::json;

    use super::*;

    fn pods() -> Vec<Arc<Pod>> {
        let pod = |name: &str, app: &str, node: Value| {
            let spec = json!({"containers": [], "nodeName": node, "hostNetwork": true});
            let pod = json!({"metadata": {"name": name, "labels": {"app": app}}, "spec": spec});
            Arc::new(kubewright_objects::from_value::<Pod>(pod).expect("a Pod"))
        };
        vec![pod("a", "web", json!("n1")), pod("b", "web", Value::Null), pod("c", "db", json!("n1"))]
    }

    fn names(selected: &ListOptions) -> Vec<String> {
        let found = selected.select(pods()).expect("a selector");
        found.iter().map(|pod| pod.metadata.name.clone().unwrap_or_default()).collect()
    }

    #[test]
    fn what_is_said_twice_must_hold_both() {
        let web = ListOptions::all().labels(Expression::Equal("app".into(), "web".into()));
        assert_eq!(names(&web), ["a", "b"]);
        assert_eq!(names(&web.clone().fields("spec.nodeName=n1")), ["a"]);
        assert_eq!(names(&web.clone().fields("spec.nodeName!=n1").fields("metadata.name=b")), ["b"]);
        assert_eq!(names(&web.labels(Expression::Equal("app".into(), "db".into()))), [""; 0]);
    }

    #[test]
    fn a_field_that_is_not_there_has_the_empty_value() {
        assert_eq!(names(&ListOptions::all().fields("spec.nodeName=")), ["b"]);
        assert_eq!(
            names(&ListOptions::all().fields("spec.hostNetwork=true,spec.nothing!=x")),
            ["a", "b", "c"]
        );
        assert_eq!(names(&ListOptions::all().fields("spec.nodeName==n1")), ["a", "c"]);
    }

    #[test]
    fn what_is_no_selector_is_said() {
        let wrong = ListOptions::all().fields("spec.nodeName");
        let error = wrong.select(pods()).expect_err("no selector").to_string();
        assert!(error.contains("\"spec.nodeName\" is no field selector"), "{error}");
        assert!(wrong.params().is_err());
        let params =
            ListOptions::all().labels(Expression::Exists("app".into())).fields("a=b").params().expect("one");
        assert_eq!(
            (params.label_selector.as_deref(), params.field_selector.as_deref()),
            (Some("app"), Some("a=b"))
        );
    }
}
