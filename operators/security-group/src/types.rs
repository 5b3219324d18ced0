//! The SecurityGroup kind: what a user asks for, and what the operator keeps of it.
//!
//! It takes the manifests of both generations of openstack-sg-controller: ports as numbers or strings; direction, ether
//! type and protocol where they are told, and else what the first generation had no words for: ingress, TCP, and the ether
//! type of the prefix.
#![expect(unreachable_pub, reason = "the derive of KubeSchema repeats each struct inside a function")]
#![expect(clippy::duplicated_attributes, reason = "columns of one type look like one attribute to clippy")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What a user asks for.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "openstack.repl.info",
    version = "v1beta1",
    kind = "SecurityGroup",
    plural = "securitygroups",
    shortname = "osg",
    category = "openstack",
    namespaced,
    status = "SecurityGroupStatus",
    derive = "PartialEq",
    doc = "A SecurityGroup is a security group of an OpenStack cloud, its rules, and the servers of the selected nodes in it.",
    printcolumn(name = "ID", type_ = "string", json_path = ".status.id"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.attached"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("(has(self.nodeSelector) && size(self.nodeSelector) > 0) || (has(self.nodeLabelSelector) && ((has(self.nodeLabelSelector.matchLabels) && size(self.nodeLabelSelector.matchLabels) > 0) || (has(self.nodeLabelSelector.matchExpressions) && size(self.nodeLabelSelector.matchExpressions) > 0)))")
        .message("an empty selector would put every node into the group: give nodeSelector or nodeLabelSelector at least one entry"),
    validation = Rule::new("has(self.id) == has(oldSelf.id) && (!has(self.id) || self.id == oldSelf.id)")
        .message("id cannot be changed: delete this SecurityGroup and make another one"),
    validation = Rule::new("!(has(self.id) && has(self.adoptExisting) && self.adoptExisting)")
        .message("id names the group already: leave adoptExisting out")
)]
pub struct SecurityGroupSpec {
    /// The group's name in OpenStack. It identifies nothing: to change it renames the group.
    #[schemars(schema_with = "schema::group_name")]
    #[x_kube(validation = Rule::new("self.lowerAscii() != 'default'").message("OpenStack keeps the name default for itself"))]
    pub name: String,
    /// The ID of a group that is there already, to be taken over. It is kept when this object is deleted, unless
    /// deletionPolicy is Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::group_id")]
    pub id: Option<String>,
    /// Take over the group of this name, if there is exactly one and it belongs to no other SecurityGroup. As with id, it is
    /// kept when this object is deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt_existing: bool,
    /// The project that the first generation's manifests name; the credentials decide it, and nothing reads this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Which nodes' servers are in the group: those with all of these labels. `role: X` means the label
    /// node-role.kubernetes.io/X, whatever its value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Further restricts which nodes' servers are in the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_label_selector: Option<LabelSelector>,
    /// What is let through. Other rules are taken out of the group.
    #[serde(default)]
    #[schemars(length(max = 300))]
    pub rules: Vec<SecurityGroupRule>,
    /// Leave the rules that OpenStack gives each new group (everything may leave) where they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_default_egress: bool,
    /// Which ports of the servers are in the group; all if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<PortFilter>,
    /// What becomes of the group when this object is deleted: Delete or Retain. If not told, a group that the operator has made
    /// is deleted and one that was taken over is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// A Secret of the same namespace with the credentials of the cloud; the operator's own if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_ref: Option<CloudRef>,
    /// How often the cloud is looked at, in seconds; 60 if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::sync_period")]
    pub sync_period_seconds: Option<u32>,
}

/// One thing that is let through.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.remoteIpPrefix) != has(self.remoteGroupRef)")
        .message("give either remoteIpPrefix or remoteGroupRef; everybody is 0.0.0.0/0 or ::/0"),
    validation = Rule::new("has(self.portRangeMin) == has(self.portRangeMax)")
        .message("give both portRangeMin and portRangeMax, or none for all ports"),
    validation = Rule::new("!has(self.portRangeMin) || !has(self.portRangeMax) || (has(self.protocol) && self.protocol.lowerAscii() in ['icmp', 'ipv6-icmp']) || int(self.portRangeMin) <= int(self.portRangeMax)")
        .message("portRangeMin is more than portRangeMax"),
    validation = Rule::new("!has(self.portRangeMin) || !has(self.portRangeMax) || !has(self.protocol) || self.protocol.lowerAscii() in ['tcp', 'udp', 'sctp', 'dccp', 'udplite', 'icmp', 'ipv6-icmp'] || (int(self.portRangeMin) == 0 && int(self.portRangeMax) == 0)")
        .message("this protocol has no ports"),
    validation = Rule::new("(!has(self.icmpType) && !has(self.icmpCode)) || (has(self.protocol) && self.protocol.lowerAscii() in ['icmp', 'ipv6-icmp'] && !has(self.portRangeMin))")
        .message("icmpType and icmpCode are for the protocols icmp and ipv6-icmp, without ports"),
    validation = Rule::new("!has(self.icmpCode) || has(self.icmpType)").message("an icmpCode needs an icmpType"),
    validation = Rule::new("!has(self.etherType) || !has(self.remoteIpPrefix) || (self.etherType == 'IPv6') == self.remoteIpPrefix.contains(':')")
        .message("etherType and remoteIpPrefix are of different families"),
    validation = Rule::new("!has(self.protocol) || !self.protocol.lowerAscii().startsWith('ipv6-') || (has(self.etherType) ? self.etherType == 'IPv6' : (has(self.remoteIpPrefix) && self.remoteIpPrefix.contains(':')))")
        .message("this protocol needs the etherType IPv6")
)]
pub struct SecurityGroupRule {
    /// The first port, as a number or a string; 0 and 0 are all ports. Of ICMP: the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_range_min: Option<PortNumber>,
    /// The last port. Of ICMP: the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_range_max: Option<PortNumber>,
    /// The type of ICMP messages; all if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::byte")]
    pub icmp_type: Option<u8>,
    /// The code of ICMP messages; all if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::byte")]
    pub icmp_code: Option<u8>,
    /// Who is let through: a network or an address, such as 10.0.0.0/8, 192.0.2.7 or 2001:db8::/32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::prefix")]
    #[x_kube(validation = Rule::new("isCIDR(self) || isIP(self)").message("must be a network or an address, such as 10.0.0.0/8 or 192.0.2.7"))]
    pub remote_ip_prefix: Option<String>,
    /// Who is let through: the members of the group of another SecurityGroup of this namespace, or of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_group_ref: Option<RemoteGroupRef>,
    /// Into the servers or out of them; ingress if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The family of addresses; that of remoteIpPrefix, or IPv4, if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ether_type: Option<EtherType>,
    /// The protocol; TCP if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::protocol")]
    pub protocol: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::description")]
    pub description: Option<String>,
}

/// Into the servers or out of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into them.
    #[default]
    Ingress,
    /// Out of them.
    Egress,
}

/// The family of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum EtherType {
    /// Of 32 bits.
    #[default]
    IPv4,
    /// Of 128 bits.
    IPv6,
}

/// A port, written as a number or as a string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PortNumber {
    /// `8888`
    Number(u16),
    /// `"8888"`
    Text(String),
}

impl PortNumber {
    /// The number; `None` for a string that is none, which the schema refuses.
    #[must_use]
    pub fn number(&self) -> Option<u16> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

/// Names another SecurityGroup of the same namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RemoteGroupRef {
    /// Its `metadata.name`.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
}

/// Which ports of a server are meant: those that fulfil all that is told.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PortFilter {
    /// Ports in one of these networks, by ID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network_ids: Vec<String>,
    /// Ports with an address of one of these subnets, by ID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnet_ids: Vec<String>,
}

/// What becomes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// It is deleted too.
    Delete,
    /// It stays in the cloud, without the operator's servers.
    Retain,
}

/// A Secret with credentials: a `clouds.yaml`, or keys as the variables of the environment are called (`os_auth_url`, ...), and
/// a `cacert` where the cloud's certificates need one.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudRef {
    /// The Secret's name.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// Which cloud of its `clouds.yaml`; the only one, or `openstack`, if not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
}

/// What the operator last saw, and what it has to remember.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupStatus {
    /// The group's ID, which alone says which group it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The group's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the group was there before and was taken over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// The IDs of the servers that are in the group, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// How many of the selected nodes' servers are in the group: `2/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<String>,
    /// The ports that the operator has put into the group or is about to: written before that is done, so that whatever
    /// happens they are taken out again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<AttachedPort>,
    /// Selected nodes whose servers are not in the group, or not with all ports, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<NodeProblem>,
    /// When the operator asked the cloud for a new group whose ID it does not know yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creating_since: Option<Time>,
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `RulesSynced` and `Attached`, and `CleanupFailed` where a cleanup did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// A port that is in the group.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttachedPort {
    /// The port's ID.
    pub id: String,
    /// The ID of its server.
    pub server: String,
}

/// A selected node whose server is not in the group as it should be.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProblem {
    /// The node's name.
    pub node: String,
    /// One word for programs.
    pub reason: String,
    /// For people.
    pub message: String,
}
