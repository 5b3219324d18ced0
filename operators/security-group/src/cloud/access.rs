//! How to get into a cloud: from a `clouds.yaml`, from variables of the environment, from the keys of a Secret.
//!
//! All three have the same settings under the same names (`openstackclient`'s documentation, "Configuration"): `auth_url` is
//! `auth.auth_url` in the file, `OS_AUTH_URL` in the environment, and either in a Secret.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;
use serde_json::{Value, json};

/// What is wrong with the settings of a cloud; the text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAccess(pub String);

/// How to get into a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Keystone, with its version: `https://cloud.example:5000/v3`.
    pub auth_url: String,
    /// Who.
    pub identity: Identity,
    /// Which region's services; any, if it is not told.
    pub region: Option<String>,
    /// Which of a service's addresses: public, internal or admin.
    pub interface: String,
    /// Whose certificates are good.
    pub trust: Trust,
}

/// Who logs in. Its debug form has no secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum Identity {
    /// A user with a password, in a project.
    Password {
        /// `{"name": ..., "domain": {...}}` or `{"id": ...}`.
        user: Named,
        /// The password.
        password: String,
        /// What for.
        scope: Scope,
    },
    /// An application credential, which is of one project.
    Application {
        /// Its ID, or its name with its user.
        credential: Credential,
        /// Its secret.
        secret: String,
    },
}

/// The project that is worked in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope(Named);

/// Something that Keystone knows by its ID, or by its name in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By ID.
    Id(String),
    /// By name.
    Name {
        /// The name.
        name: String,
        /// `{"id": ...}` or `{"name": ...}`.
        domain: Domain,
    },
}

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// By ID.
    Id(String),
    /// By name.
    Name(String),
}

/// Which application credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// By ID.
    Id(String),
    /// By the name that a user gave it.
    OfUser {
        /// Its name.
        name: String,
        /// Whose.
        user: Named,
    },
}

/// Whose certificates are good, and which one is shown: all in PEM. Its debug form has no keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// The only authorities that are trusted; those of the machine if not told.
    pub authorities: Option<String>,
    /// The certificate and the key that are shown to servers.
    pub client: Option<(String, String)>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user, scope, .. } => {
                f.debug_struct("Password").field("user", user).field("scope", scope).finish_non_exhaustive()
            }
            Self::Application { credential, .. } => {
                f.debug_struct("Application").field("credential", credential).finish_non_exhaustive()
            }
        }
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (authorities, client) = (self.authorities.is_some(), self.client.is_some());
        f.debug_struct("Trust").field("authorities", &authorities).field("client", &client).finish()
    }
}

/// Settings under their short names (`auth_url`, `cacert`), from wherever.
type Settings<'a> = dyn Fn(&str) -> Option<String> + 'a;
/// Reads the certificate or key that a setting names.
type Read<'a> = dyn Fn(&str) -> Result<String, BadAccess> + 'a;

impl Access {
    /// From the text of a `clouds.yaml`. `cloud` says which; the only one, or `openstack`, if it is `None`. `read` gives what is
    /// at the path of a certificate.
    ///
    /// # Errors
    /// What is wrong or missing.
    pub fn from_clouds_yaml(text: &str, cloud: Option<&str>, read: &Read<'_>) -> Result<Self, BadAccess> {
        let file: CloudsFile = serde_saphyr::from_str(text).map_err(|_| {
            // What the parser says could quote a password.
            BadAccess("clouds.yaml is no YAML with a map of clouds".to_owned())
        })?;
        let name = match (cloud, file.clouds.len()) {
            (Some(name), _) => name.to_owned(),
            (None, 1) => file.clouds.keys().next().cloned().unwrap_or_default(),
            (None, _) => "openstack".to_owned(),
        };
        let cloud = file.clouds.get(&name).ok_or_else(|| {
            let names: Vec<&str> = file.clouds.keys().map(String::as_str).collect();
            BadAccess(format!("clouds.yaml has no cloud {name:?} but {names:?}: say which one"))
        })?;
        let get = |name: &str| scalar(&cloud["auth"][name]).or_else(|| scalar(&cloud[name]));
        Self::from_settings(&get, read).map_err(|error| BadAccess(format!("cloud {name:?}: {error}")))
    }

    /// From variables as they are in the environment (`OS_AUTH_URL`): `get` gives them by these names.
    ///
    /// # Errors
    /// What is wrong or missing.
    pub fn from_variables(get: impl Fn(&str) -> Option<String>, read: &Read<'_>) -> Result<Self, BadAccess> {
        let get = |name: &str| get(&format!("OS_{}", name.to_uppercase()));
        Self::from_settings(&get, read)
    }

    /// From a Secret's data: its `clouds.yaml`, or keys like the variables of the environment in any case; `cacert`, `cert` and
    /// `key` are the certificates themselves.
    ///
    /// # Errors
    /// What is wrong or missing.
    pub fn from_secret(data: &BTreeMap<String, String>, cloud: Option<&str>) -> Result<Self, BadAccess> {
        let find = |name: &str| data.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, it)| it);
        let certificate = |name: &str| {
            find(name).or_else(|| find(&format!("OS_{name}"))).filter(|text| text.contains("-----BEGIN"))
        };
        let read = |path: &str| {
            // What the file calls a path is another key of the Secret, by its last part.
            let name = path.rsplit('/').next().unwrap_or(path);
            find(name).cloned().ok_or_else(|| BadAccess(format!("the Secret has no key {name:?}")))
        };
        let mut access = match find("clouds.yaml") {
            Some(text) => Self::from_clouds_yaml(text, cloud, &read)?,
            None => {
                let get = |name: &str| {
                    let is_file = ["cacert", "cert", "key"].contains(&name);
                    find(&format!("OS_{name}")).filter(|_| !is_file).cloned()
                };
                Self::from_settings(&get, &read)?
            }
        };
        if let Some(text) = certificate("cacert") {
            access.trust.authorities = Some(text.clone());
        }
        if let (Some(cert), Some(key)) = (certificate("cert"), certificate("key")) {
            access.trust.client = Some((cert.clone(), key.clone()));
        }
        Ok(access)
    }

    fn from_settings(get: &Settings<'_>, read: &Read<'_>) -> Result<Self, BadAccess> {
        let get = |name: &str| get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let auth_url = get("auth_url").ok_or_else(|| missing("auth_url"))?;
        let auth_url = auth_url.trim_end_matches('/');
        let version = get("identity_api_version").unwrap_or_else(|| "3".to_owned());
        if auth_url.ends_with("/v2.0") || !version.starts_with('3') {
            return Err(BadAccess("Keystone's version 2 is gone: use version 3".to_owned()));
        }
        if !auth_url.starts_with("http://") && !auth_url.starts_with("https://") {
            return Err(BadAccess(format!("auth_url {auth_url:?} is no http:// or https:// URL")));
        }
        if get("verify").is_some_and(|verify| verify.eq_ignore_ascii_case("false")) {
            return Err(BadAccess(
                "verify: false is not done: give the authority's certificate (cacert)".to_owned(),
            ));
        }
        let client = match (get("cert"), get("key")) {
            (Some(cert), Some(key)) => Some((read(&cert)?, read(&key)?)),
            (None, None) => None,
            _ => return Err(BadAccess("cert and key belong together".to_owned())),
        };
        Ok(Self {
            auth_url: if auth_url.ends_with("/v3") { auth_url.to_owned() } else { format!("{auth_url}/v3") },
            identity: Identity::from_settings(&get)?,
            region: get("region_name"),
            interface: get("interface").map_or_else(
                || "public".to_owned(),
                |interface| interface.trim_end_matches("URL").to_owned(),
            ),
            trust: Trust { authorities: get("cacert").map(|path| read(&path)).transpose()?, client },
        })
    }

    /// The body of the request that logs in (Keystone's API v3, "Password authentication with scoped authorization" and
    /// "Authenticating with an Application Credential").
    #[must_use]
    pub(super) fn login(&self) -> Value {
        match &self.identity {
            Identity::Password { user, password, scope } => {
                let mut user = user.value();
                user["password"] = password.as_str().into();
                json!({"auth": {
                    "identity": {"methods": ["password"], "password": {"user": user}},
                    "scope": {"project": scope.0.value()},
                }})
            }
            Identity::Application { credential, secret } => {
                let mut credential = match credential {
                    Credential::Id(id) => json!({"id": id}),
                    Credential::OfUser { name, user } => json!({"name": name, "user": user.value()}),
                };
                credential["secret"] = secret.as_str().into();
                json!({"auth": {"identity": {
                    "methods": ["application_credential"],
                    "application_credential": credential,
                }}})
            }
        }
    }
}

impl Identity {
    fn from_settings(get: &Settings<'_>) -> Result<Self, BadAccess> {
        let domain = |of: &str| {
            let shared = || get("domain_id").map(Domain::Id).or_else(|| get("domain_name").map(Domain::Name));
            get(&format!("{of}_domain_id"))
                .map(Domain::Id)
                .or_else(|| get(&format!("{of}_domain_name")).map(Domain::Name))
                .or_else(shared)
                .unwrap_or_else(|| Domain::Id(get("default_domain").unwrap_or_else(|| "default".to_owned())))
        };
        let user = || {
            let by_name = || get("username").map(|name| Named::Name { name, domain: domain("user") });
            get("user_id").map(Named::Id).or_else(by_name)
        };
        let application = get("application_credential_id").map(Credential::Id).or_else(|| {
            let name = get("application_credential_name")?;
            Some(Credential::OfUser { name, user: user()? })
        });
        if let Some(credential) = application {
            let secret = get("application_credential_secret");
            let secret = secret.ok_or_else(|| missing("application_credential_secret"))?;
            return Ok(Self::Application { credential, secret });
        }
        let project = get("project_id").or_else(|| get("tenant_id")).map(Named::Id);
        let by_name = || {
            let name = get("project_name").or_else(|| get("tenant_name"))?;
            Some(Named::Name { name, domain: domain("project") })
        };
        Ok(Self::Password {
            user: user().ok_or_else(|| missing("username"))?,
            password: get("password").ok_or_else(|| missing("password"))?,
            scope: Scope(project.or_else(by_name).ok_or_else(|| missing("project_name"))?),
        })
    }
}

impl Named {
    fn value(&self) -> Value {
        match self {
            Self::Id(id) => json!({"id": id}),
            Self::Name { name, domain: Domain::Id(id) } => json!({"name": name, "domain": {"id": id}}),
            Self::Name { name, domain: Domain::Name(of) } => json!({"name": name, "domain": {"name": of}}),
        }
    }
}

#[derive(Deserialize)]
struct CloudsFile {
    clouds: BTreeMap<String, Value>,
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn missing(name: &str) -> BadAccess {
    BadAccess(format!("{name} is missing (OS_{} in the environment)", name.to_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(path: &str) -> Result<String, BadAccess> {
        Err(BadAccess(format!("no file {path}")))
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// SG-16: the Secret of the write-up's `make deploy`, with all of its keys.
    #[test]
    fn sg_16_the_secret_with_the_keys_of_the_first_generation_is_taken() {
        let secret = map(&[
            ("os_auth_url", "https://cloud.example:5000/v3"),
            ("os_username", "me"),
            ("os_password", "hunter2"),
            ("os_project_name", "demo"),
            ("os_tenant_name", "demo"),
            ("os_region_name", "RegionOne"),
            ("os_identity_api_version", "3"),
            ("os_domain_name", "Default"),
            ("os_project_domain_name", "Default"),
            ("os_user_domain_name", "Default"),
        ]);
        let access = Access::from_secret(&secret, None).expect("it is enough");
        assert_eq!(access.region.as_deref(), Some("RegionOne"));
        let body = access.login();
        let user = &body["auth"]["identity"]["password"]["user"];
        assert_eq!(*user, json!({"name": "me", "domain": {"name": "Default"}, "password": "hunter2"}));
        assert_eq!(body["auth"]["scope"]["project"], json!({"name": "demo", "domain": {"name": "Default"}}));
        assert!(!format!("{access:?}").contains("hunter2"), "{access:?}");
    }

    /// SG-16: the same names in the environment, with OS_CACERT, OS_CERT and OS_KEY.
    #[test]
    fn sg_16_the_variables_of_the_environment_are_taken() {
        let variables = map(&[
            ("OS_AUTH_URL", "https://cloud.example/identity/"),
            ("OS_USERNAME", "me"),
            ("OS_PASSWORD", "hunter2"),
            ("OS_TENANT_NAME", "demo"),
            ("OS_CACERT", "/ca"),
            ("OS_CERT", "/cert"),
            ("OS_KEY", "/key"),
        ]);
        let read = |path: &str| Ok(format!("PEM of {path}"));
        let access =
            Access::from_variables(|name| variables.get(name).cloned(), &read).expect("it is enough");
        assert_eq!(access.auth_url, "https://cloud.example/identity/v3");
        assert_eq!(access.trust.authorities.as_deref(), Some("PEM of /ca"));
        assert_eq!(access.trust.client, Some(("PEM of /cert".to_owned(), "PEM of /key".to_owned())));
        assert_eq!(access.login()["auth"]["scope"]["project"]["domain"], json!({"id": "default"}));
    }

    #[test]
    fn an_application_credential_needs_no_project() {
        let text = "clouds: {x: {auth_type: v3applicationcredential, auth: {auth_url: 'http://k/v3', \
                    application_credential_id: '1', application_credential_secret: s3}}}";
        let access = Access::from_clouds_yaml(text, None, &nothing).expect("it is enough");
        let login = access.login();
        assert_eq!(login["auth"]["identity"]["application_credential"], json!({"id": "1", "secret": "s3"}));
        assert_eq!(login["auth"].get("scope"), None);
        assert!(!format!("{access:?}").contains("s3"));
    }

    #[test]
    fn what_is_missing_is_told_and_never_what_is_secret() {
        let describe = |text: &str, cloud| {
            Access::from_clouds_yaml(text, cloud, &nothing).expect_err("it is not enough").to_string()
        };
        let two = "clouds: {a: {auth: {}}, b: {auth: {}}}";
        assert_eq!(
            describe(two, None),
            r#"clouds.yaml has no cloud "openstack" but ["a", "b"]: say which one"#
        );
        assert_eq!(
            describe(two, Some("a")),
            r#"cloud "a": auth_url is missing (OS_AUTH_URL in the environment)"#
        );
        let no_password = "clouds: {a: {auth: {auth_url: 'http://k', username: u, project_name: p}}}";
        assert_eq!(
            describe(no_password, None),
            r#"cloud "a": password is missing (OS_PASSWORD in the environment)"#
        );
        let unsafe_one =
            "clouds: {a: {verify: false, auth: {auth_url: 'http://k', username: u, password: hunter2}}}";
        assert!(describe(unsafe_one, None).contains("cacert"));
        assert!(describe("clouds: [{password: hunter2", None).starts_with("clouds.yaml is no YAML"));
        assert!(describe("clouds: {a: {auth: {auth_url: 'ftp://k'}}}", None).contains("is no http"));
    }

    #[test]
    fn a_secret_may_have_a_clouds_yaml_and_the_authoritys_certificate() {
        let yaml = "clouds: {a: {cacert: /etc/ssl/ca.pem, auth: {auth_url: 'http://k', username: u, password: p, \
                    project_id: '7'}}, b: {auth: {auth_url: 'http://l'}}}";
        let pem = "-----BEGIN CERTIFICATE-----";
        let by_path = Access::from_secret(&map(&[("clouds.yaml", yaml), ("ca.pem", pem)]), Some("a"));
        assert_eq!(by_path.expect("it is enough").trust.authorities.as_deref(), Some(pem));
        let missing = Access::from_secret(&map(&[("clouds.yaml", yaml)]), Some("a")).expect_err("no file");
        assert_eq!(missing.to_string(), r#"cloud "a": the Secret has no key "ca.pem""#);
    }
}
