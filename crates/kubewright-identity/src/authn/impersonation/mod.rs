//! Acting as somebody else: the `Impersonate-*` headers and the rights that they need
//! (`k8s.io/apiserver/pkg/endpoints/filters/impersonation`).
//!
//! From Kubernetes v1.36 on (the feature ConstrainedImpersonation) there are narrow rights beside the old verb `impersonate`: who has `impersonate:<mode>` on a
//! user *and* `impersonate-on:<mode>:<verb>` on what the request is about may act as that user in this one request. The
//! modes are tried from the narrowest to the old one.

use std::collections::BTreeMap;

use http::HeaderMap;
use kubewright_meta::ApiError;
use kubewright_spec::{Version, has_feature};
use percent_encoding::percent_decode_str;

use super::user::{
    ANONYMOUS, AUTHENTICATED, NODES, SYSTEM_MASTERS, UNAUTHENTICATED, User, service_account_groups,
    split_node, split_service_account,
};
use crate::authz::{Attributes, Rights, forbidden};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// So many groups or extra values at once are first asked about together, as `*`.
const MANY: usize = 4;

/// Whom a request's headers ask to act as, just as they say it; `None` without such headers.
///
/// # Errors
/// 400 when there are groups, a uid or extra values, but no user.
pub fn wanted(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            extra.entry(unescape(key)).or_default().push(text(value));
        }
    }
    let wanted = User {
        name: first(USER),
        uid: first(UID),
        groups: headers.get_all(GROUP).iter().map(text).collect(),
        extra,
    };
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
        return Ok(None);
    }
    Err(ApiError::bad_request(format!("requested {} without impersonating a user name", go_syntax(&wanted))))
}

/// In a version of Kubernetes, who a request's caller is from here on, when `caller` may act as `wanted` for `request`: `wanted` with the groups that
/// go with the name (a service account's, a node's, `system:authenticated`).
///
/// # Errors
/// 403 with the refusal of the narrowest mode; of the old one when the caller has the old right for others.
pub fn impersonate(
    version: Version,
    rights: &Rights,
    caller: &User,
    wanted: &User,
    request: &Attributes<'_>,
) -> Result<User, ApiError> {
    let check = |mode| Check { rights, caller, mode }.all(wanted, request);
    let mut narrowest = None;
    let is_constrained = has_feature(version, "ConstrainedImpersonation");
    let narrow = Mode::NARROW.into_iter().filter(|mode| is_constrained && mode.applies(caller, wanted));
    for mode in narrow {
        match check(mode) {
            Ok(user) => return Ok(user),
            Err(refusal) => _ = narrowest.get_or_insert(refusal),
        }
    }
    // A real server remembers which mode last worked for a caller and reports that one's refusal. That state is spared
    // here: whoever has the old right for somebody is taken for one who uses it.
    check(Mode::Legacy).map_err(|refusal| match narrowest {
        Some(narrowest) if !has_old_right(rights, caller, wanted) => narrowest,
        _ => refusal,
    })
}

/// Whether the caller holds the verb `impersonate` for anybody, where `wanted` lives.
fn has_old_right(rights: &Rights, caller: &User, wanted: &User) -> bool {
    let namespace = split_service_account(&wanted.name).map_or("", |(namespace, _)| namespace);
    let (rules, _) = rights.rbac().rules_for(caller, namespace);
    rules.iter().any(|rule| rule.verbs.iter().any(|verb| verb == "impersonate"))
}

/// The ways to be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A service account of a pod as the pod's node.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// The verb `impersonate` alone, for any request.
    Legacy,
}

impl Mode {
    /// All but the old one, from the narrowest on.
    const NARROW: [Self; 4] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo];

    /// The name within verbs; the old mode has none.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }

    fn applies(self, caller: &User, wanted: &User) -> bool {
        let name_only = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = split_node(&wanted.name);
        let account = split_service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                name_only
                    && node.is_some()
                    && split_service_account(&caller.name).is_some()
                    && matches!(caller.extra.get(NODE_NAME).map(Vec::as_slice), Some([one]) if Some(one.as_str()) == node)
            }
            Self::ArbitraryNode => name_only && node.is_some(),
            Self::ServiceAccount => name_only && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }
}

/// One caller's rights in one mode.
struct Check<'a> {
    rights: &'a Rights,
    caller: &'a User,
    mode: Mode,
}

impl Check<'_> {
    fn all(&self, wanted: &User, request: &Attributes<'_>) -> Result<User, ApiError> {
        if let Some(mode) = self.mode.name() {
            let verb = format!("impersonate-on:{mode}:{}", request.verb);
            self.ask(&Attributes { verb: &verb, ..*request })?;
        }
        let verb = match self.mode.name() {
            Some(mode) => format!("impersonate:{mode}"),
            None => "impersonate".to_owned(),
        };
        let mut user = wanted.clone();
        self.name(&verb, wanted, &mut user)?;
        if !wanted.uid.is_empty() {
            self.ask(&about(&verb, AUTHENTICATION, "uids", &wanted.uid))?;
        }
        self.groups(&verb, &wanted.groups)?;
        self.extra(&verb, &wanted.extra)?;
        let unauthenticated = user.is_in(UNAUTHENTICATED);
        let joins = match user.name.as_str() {
            ANONYMOUS => UNAUTHENTICATED,
            _ if unauthenticated => return Ok(user),
            _ => AUTHENTICATED,
        };
        if !user.is_in(joins) {
            user.groups.push(joins.to_owned());
        }
        Ok(user)
    }

    /// Also gives `user` the groups that its name brings, where none were asked for.
    fn name(&self, verb: &str, wanted: &User, user: &mut User) -> Result<(), ApiError> {
        let mut what = about(verb, self.group(), "users", &wanted.name);
        if let (Some(node), true) = (split_node(&wanted.name), self.narrow()) {
            what.resource = "nodes";
            what.name = if self.mode == Mode::AssociatedNode { "*" } else { node };
            user.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, name)) = split_service_account(&wanted.name) {
            what.resource = "serviceaccounts";
            what.namespace = namespace;
            what.name = name;
            if wanted.groups.is_empty() {
                user.groups = service_account_groups(namespace).to_vec();
            }
        }
        self.ask(&what)
    }

    fn groups(&self, verb: &str, groups: &[String]) -> Result<(), ApiError> {
        let what = about(verb, self.group(), "groups", "");
        if self.narrow() {
            if groups.iter().any(String::is_empty) {
                return Err(self.refuse(&what, "impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == SYSTEM_MASTERS) {
                let what = Attributes { name: SYSTEM_MASTERS, ..what };
                return Err(self.refuse(&what, "impersonating the system:masters group is not allowed"));
            }
            if groups.len() >= MANY && self.ask(&Attributes { name: "*", ..what }).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.ask(&Attributes { name: group, ..what }))
    }

    fn extra(&self, verb: &str, extra: &BTreeMap<String, Vec<String>>) -> Result<(), ApiError> {
        let what = about(verb, AUTHENTICATION, "userextras", "");
        if self.narrow() {
            for (key, values) in extra {
                if let Err(why) = check_extra(key, values) {
                    return Err(self.refuse(&what, &why));
                }
            }
            let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.ask(&Attributes { subresource: "*", name: "*", ..what }).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.ask(&Attributes { subresource: key, name: value, ..what })?;
            }
        }
        Ok(())
    }

    fn narrow(&self) -> bool {
        self.mode != Mode::Legacy
    }

    /// The API group that users and groups have in this mode.
    fn group(&self) -> &'static str {
        if self.narrow() { AUTHENTICATION } else { "" }
    }

    fn ask(&self, what: &Attributes<'_>) -> Result<(), ApiError> {
        let decision = self.rights.authorize(self.caller, what);
        if decision.allowed() { Ok(()) } else { Err(self.refuse(what, &decision.reason)) }
    }

    fn refuse(&self, what: &Attributes<'_>, why: &str) -> ApiError {
        forbidden(self.caller, what, why)
    }
}

fn about<'a>(verb: &'a str, group: &'a str, resource: &'a str, name: &'a str) -> Attributes<'a> {
    Attributes { verb, group, version: "v1", resource, name, ..Attributes::default() }
}

/// What the narrow modes ask of extra values. Keys come lower-cased from header names; that they are domain-prefixed
/// paths (`example.com/key`) is checked as far as it tells a key from a mistake.
fn check_extra(key: &str, values: &[String]) -> Result<(), String> {
    if key.is_empty() {
        return Err("impersonating the empty string key in extra is not allowed".to_owned());
    }
    if !key.split_once('/').is_some_and(|(domain, path)| !domain.is_empty() && !path.is_empty()) {
        return Err(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {key:?}: must be a \
             domain-prefixed path (such as \"acme.io/foo\")"
        ));
    }
    if key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"));
    }
    if values.iter().any(String::is_empty) {
        return Err("impersonating the empty string value in extra is not allowed".to_owned());
    }
    Ok(())
}

/// Undoes percent-encoding; a key that is not properly encoded is taken as it is.
fn unescape(key: &str) -> String {
    let broken = key.split('%').skip(1).any(|rest| {
        let digits = rest.as_bytes();
        digits.len() < 2 || !digits[..2].iter().all(u8::is_ascii_hexdigit)
    });
    if broken { key.to_owned() } else { percent_decode_str(key).decode_utf8_lossy().into_owned() }
}

/// As the real server shows what was asked for: a Go value.
fn go_syntax(user: &User) -> String {
    let list = |values: &[String]| match values {
        [] => "[]string(nil)".to_owned(),
        some => format!(
            "[]string{{{}}}",
            some.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ")
        ),
    };
    let pairs: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key:?}:{}", list(values))).collect();
    let extra = match pairs.as_slice() {
        [] => "map[string][]string(nil)".to_owned(),
        some => format!("map[string][]string{{{}}}", some.join(", ")),
    };
    let (name, uid, groups) = (&user.name, &user.uid, list(&user.groups));
    format!("&user.DefaultInfo{{Name:{name:?}, UID:{uid:?}, Groups:{groups}, Extra:{extra}}}")
}

#[cfg(test)]
mod tests;
