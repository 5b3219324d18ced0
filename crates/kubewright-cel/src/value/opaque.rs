//! Values of Kubernetes' own types.

use std::fmt;
use std::sync::Arc;

use crate::authorizer::{Authorizer, Decision, ResourceAttributes, Subject};
use crate::error::EvaluationError;
use crate::library::{Cidr, IpAddress, NamedFormat, Quantity, Semver, Url};
use crate::types::{Type, names};

/// A value of one of Kubernetes' own types.
#[derive(Clone, Debug)]
pub enum Opaque<'a> {
    /// `quantity('1Gi')`
    Quantity(Arc<Quantity>),
    /// `url('https://example.com')`
    Url(Arc<Url>),
    /// `ip('10.0.0.1')`
    Ip(IpAddress),
    /// `cidr('10.0.0.0/8')`
    Cidr(Cidr),
    /// `semver('1.2.3')`
    Semver(Arc<Semver>),
    /// `format.dns1123Label()`
    Format(NamedFormat),
    /// `authorizer`
    Authorizer(AuthorizerCheck<'a>),
    /// `authorizer.path('/healthz')`
    PathCheck(AuthorizerCheck<'a>, Arc<str>),
    /// `authorizer.group('apps')`
    GroupCheck(AuthorizerCheck<'a>, Arc<str>),
    /// `authorizer.group('apps').resource('deployments')`
    ResourceCheck(AuthorizerCheck<'a>, Arc<ResourceAttributes>),
    /// What a check gave.
    Decision(Arc<Decision>),
}

/// Who answers, and about whom.
#[derive(Clone)]
pub struct AuthorizerCheck<'a> {
    pub(crate) authorizer: &'a dyn Authorizer,
    pub(crate) subject: Arc<Subject>,
}

impl<'a> AuthorizerCheck<'a> {
    pub(super) fn new(authorizer: &'a dyn Authorizer) -> Self {
        Self { authorizer, subject: Arc::new(Subject::Requester) }
    }
}

impl fmt::Debug for AuthorizerCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizerCheck").field("subject", &self.subject).finish_non_exhaustive()
    }
}

impl Opaque<'_> {
    pub(super) fn runtime_type(&self) -> Type {
        match self {
            Opaque::Quantity(_) => Type::hidden(names::QUANTITY),
            Opaque::Url(_) => Type::hidden(names::URL),
            Opaque::Ip(_) => Type::Opaque(names::IP),
            Opaque::Cidr(_) => Type::Opaque(names::CIDR),
            Opaque::Semver(_) => Type::hidden(names::SEMVER),
            Opaque::Format(_) => Type::hidden(names::NAMED_FORMAT),
            Opaque::Authorizer(_) => Type::hidden(names::AUTHORIZER),
            Opaque::PathCheck(..) => Type::hidden(names::PATH_CHECK),
            Opaque::GroupCheck(..) => Type::hidden(names::GROUP_CHECK),
            Opaque::ResourceCheck(..) => Type::hidden(names::RESOURCE_CHECK),
            Opaque::Decision(_) => Type::hidden(names::DECISION),
        }
    }

    /// The size that costs depend on: the bytes of an address.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Opaque::Ip(address) => address.size(),
            Opaque::Cidr(network) => network.size(),
            _ => 1,
        }
    }

    /// Whether two are equal; there is no answer for what is asked of an authorizer.
    pub(super) fn equals(&self, other: &Opaque<'_>) -> Result<bool, EvaluationError> {
        Ok(match (self, other) {
            (Opaque::Quantity(left), Opaque::Quantity(right)) => left.cmp(right).is_eq(),
            (Opaque::Url(left), Opaque::Url(right)) => left == right,
            (Opaque::Ip(left), Opaque::Ip(right)) => left == right,
            (Opaque::Cidr(left), Opaque::Cidr(right)) => left == right,
            (Opaque::Semver(left), Opaque::Semver(right)) => left.cmp(right).is_eq(),
            (Opaque::Format(left), Opaque::Format(right)) => left == right,
            (Opaque::Decision(left), Opaque::Decision(right)) => Arc::ptr_eq(left, right),
            _ => false,
        })
    }
}

impl fmt::Display for Opaque<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opaque::Quantity(quantity) => quantity.fmt(f),
            Opaque::Url(url) => url.fmt(f),
            Opaque::Ip(address) => address.fmt(f),
            Opaque::Cidr(network) => network.fmt(f),
            Opaque::Semver(version) => version.fmt(f),
            other => f.write_str(other.runtime_type().name()),
        }
    }
}
