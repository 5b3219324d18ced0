//! What the operator asks of Neutron, typed.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{CloudError, Session};
use crate::rule::WantedRule;

/// How many IDs are asked for at once: a URL of 4 KiB passes everywhere.
const IDS: usize = 80;
/// The most pages of a list that are read: somebody else's list that never ends must not hold the operator up.
const PAGES: usize = 1000;
/// What stays as it is in a query: `unreserved` in RFC 3986.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A security group as it is in the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Group {
    /// Its ID.
    pub id: String,
    /// Its name, which others may have too.
    pub name: String,
    /// For people, and for finding a group again whose ID never arrived.
    #[serde(default)]
    pub description: Option<String>,
    /// Words that it is found by.
    #[serde(default)]
    pub tags: BTreeSet<String>,
    /// What it lets through.
    #[serde(default, rename = "security_group_rules")]
    pub rules: Vec<FoundRule>,
    /// When it was made, to the second.
    #[serde(default)]
    pub created_at: Option<String>,
}

/// A rule as it is in the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the names are Neutron's")]
pub struct FoundRule {
    pub id: String,
    pub direction: String,
    pub ethertype: String,
    pub protocol: Option<String>,
    pub port_range_min: Option<u16>,
    pub port_range_max: Option<u16>,
    pub remote_ip_prefix: Option<String>,
    pub remote_group_id: Option<String>,
    pub remote_address_group_id: Option<String>,
    pub description: Option<String>,
}

/// A port: where a server is plugged into a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Port {
    /// Its ID.
    pub id: String,
    /// The ID of its server.
    #[serde(default)]
    pub device_id: String,
    /// The ID of its network.
    #[serde(default)]
    pub network_id: String,
    /// Its addresses.
    #[serde(default)]
    pub fixed_ips: Vec<FixedIp>,
    /// The IDs of the groups that it is in.
    #[serde(default)]
    pub security_groups: Vec<String>,
    /// Whether it can be in groups.
    #[serde(default = "yes")]
    pub port_security_enabled: bool,
    /// Rises with each change.
    #[serde(default)]
    pub revision_number: i64,
}

/// An address of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FixedIp {
    /// The ID of its subnet.
    #[serde(default)]
    pub subnet_id: String,
}

fn yes() -> bool {
    true
}

/// Neutron, in a session.
#[derive(Clone, Debug)]
pub struct Neutron(Arc<Session>);

impl Neutron {
    /// Neutron of the cloud that the session is with.
    #[must_use]
    pub fn new(session: Arc<Session>) -> Self {
        Self(session)
    }

    /// The groups with this description, to the letter.
    ///
    /// # Errors
    /// [`CloudError`], as of all that is asked here.
    pub async fn groups_described(&self, description: &str) -> Result<Vec<Group>, CloudError> {
        self.groups(&format!("description={}", quoted(description))).await
    }

    /// The groups with this tag.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn groups_tagged(&self, tag: &str) -> Result<Vec<Group>, CloudError> {
        self.groups(&format!("tags={}", quoted(tag))).await
    }

    /// The groups of the project that have this name.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn groups_named(&self, name: &str) -> Result<Vec<Group>, CloudError> {
        let project = self.0.project().await?.map(|id| format!("&project_id={}", quoted(&id)));
        self.groups(&format!("name={}{}", quoted(name), project.unwrap_or_default())).await
    }

    async fn groups(&self, query: &str) -> Result<Vec<Group>, CloudError> {
        self.list("security_groups", &format!("/security-groups?{query}")).await
    }

    /// The group with this ID, if there is one.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn group(&self, id: &str) -> Result<Option<Group>, CloudError> {
        let answer = self.call(Method::GET, &format!("/security-groups/{}", quoted(id)), None).await;
        absent(answer)?.map(|body| read(&body, "security_group")).transpose()
    }

    /// Makes a group.
    ///
    /// # Errors
    /// [`CloudError`]; after one that [is passing](CloudError::is_passing) the group may be there.
    pub async fn create_group(&self, name: &str, description: &str) -> Result<Group, CloudError> {
        let body = json!({"security_group": {"name": name, "description": description}});
        read(&self.call(Method::POST, "/security-groups", Some(&body)).await?, "security_group")
    }

    /// Gives a group another name.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn rename_group(&self, id: &str, name: &str) -> Result<(), CloudError> {
        let body = json!({"security_group": {"name": name}});
        self.call(Method::PUT, &format!("/security-groups/{}", quoted(id)), Some(&body)).await.map(drop)
    }

    /// Gives a group these tags and no others.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn tag_group(&self, id: &str, tags: &BTreeSet<String>) -> Result<(), CloudError> {
        let path = format!("/security-groups/{}/tags", quoted(id));
        self.call(Method::PUT, &path, Some(&json!({ "tags": tags }))).await.map(drop)
    }

    /// Deletes a group; tells whether it was there.
    ///
    /// # Errors
    /// [`CloudError`], [that it is in use](CloudError::is_in_use) among it.
    pub async fn delete_group(&self, id: &str) -> Result<bool, CloudError> {
        let answer = self.call(Method::DELETE, &format!("/security-groups/{}", quoted(id)), None).await;
        Ok(absent(answer)?.is_some())
    }

    /// Makes a rule; tells whether it was not there. That there is one like it is no error.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn create_rule(&self, group: &str, rule: &WantedRule) -> Result<bool, CloudError> {
        let body = rule.rule.body(group, &rule.description);
        match self.call(Method::POST, "/security-group-rules", Some(&body)).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_duplicate_rule() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes a rule; tells whether it was there.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn delete_rule(&self, id: &str) -> Result<bool, CloudError> {
        let answer = self.call(Method::DELETE, &format!("/security-group-rules/{}", quoted(id)), None).await;
        Ok(absent(answer)?.is_some())
    }

    /// The ports of these servers: a request for each eighty.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn ports_of_servers(&self, servers: &BTreeSet<String>) -> Result<Vec<Port>, CloudError> {
        let servers: Vec<&String> = servers.iter().collect();
        let mut ports = Vec::new();
        for some in servers.chunks(IDS) {
            let ids: Vec<String> = some.iter().map(|id| format!("device_id={}", quoted(id))).collect();
            ports.extend(self.list::<Port>("ports", &format!("/ports?{}", ids.join("&"))).await?);
        }
        Ok(ports)
    }

    /// The ports that are in this group.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn ports_in_group(&self, group: &str) -> Result<Vec<Port>, CloudError> {
        self.list("ports", &format!("/ports?security_groups={}", quoted(group))).await
    }

    /// The port with this ID, if there is one.
    ///
    /// # Errors
    /// [`CloudError`].
    pub async fn port(&self, id: &str) -> Result<Option<Port>, CloudError> {
        let answer = self.call(Method::GET, &format!("/ports/{}", quoted(id)), None).await;
        absent(answer)?.map(|body| read(&body, "port")).transpose()
    }

    /// Puts a port into these groups and no others, if it is as it was when its `revision` was read.
    ///
    /// # Errors
    /// [`CloudError`], [that it is not](CloudError::is_stale) among it.
    pub async fn set_groups_of_port(
        &self,
        id: &str,
        groups: &[String],
        revision: i64,
    ) -> Result<(), CloudError> {
        let body = json!({"port": {"security_groups": groups}});
        let condition = HeaderValue::from_str(&format!("revision_number={revision}"))
            .map_err(|error| CloudError::Nonsense(error.to_string()))?;
        let headers = HeaderMap::from_iter([(header::IF_MATCH, condition)]);
        let path = format!("/ports/{}", quoted(id));
        self.0.network(&Method::PUT, &path, Some(&body), &headers).await.map(drop)
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Bytes, CloudError> {
        self.0.network(&method, path, body, &HeaderMap::new()).await
    }

    /// All pages of a list.
    async fn list<T: DeserializeOwned>(&self, name: &str, path: &str) -> Result<Vec<T>, CloudError> {
        let (mut all, mut next) = (Vec::new(), Some(path.to_owned()));
        for _ in 0..PAGES {
            let Some(path) = next.take() else { break };
            let body = self.call(Method::GET, &path, None).await?;
            let mut page: Value =
                serde_json::from_slice(&body).map_err(|error| CloudError::Nonsense(error.to_string()))?;
            all.extend(from::<Vec<T>>(page[name].take())?);
            let links = page[format!("{name}_links")].take();
            let links = links.as_array().into_iter().flatten();
            next = links
                .filter(|link| link["rel"] == "next")
                .find_map(|link| link["href"].as_str().map(str::to_owned));
        }
        Ok(all)
    }
}

/// What is not there is `None`.
fn absent(answer: Result<Bytes, CloudError>) -> Result<Option<Bytes>, CloudError> {
    match answer {
        Ok(body) => Ok(Some(body)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn read<T: DeserializeOwned>(body: &[u8], name: &str) -> Result<T, CloudError> {
    let mut value: Value =
        serde_json::from_slice(body).map_err(|error| CloudError::Nonsense(error.to_string()))?;
    from(value[name].take())
}

fn from<T: DeserializeOwned>(value: Value) -> Result<T, CloudError> {
    kubewright::object::from_value(value).map_err(|error| CloudError::Nonsense(error.to_string()))
}

fn quoted(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string()
}
