//! Which cloud a SecurityGroup is in, and the sessions with them.
//!
//! Credentials are read at each pass, so a change of theirs needs no restart; a session lasts for as long as they stay.

use std::{collections::BTreeMap, env, fs, path::PathBuf, sync::Arc};

use k8s_openapi::api::core::v1::Secret;
use kubewright::{Context, Error, Key};
use parking_lot::Mutex;

use crate::{
    SecurityGroup,
    cloud::{Access, BadAccess, Internet, Network, Session},
    types::CloudRef,
};

/// The Secret with the operator's own credentials, in its namespace.
pub const SECRET: &str = "openstack-sg-controller";
/// What a user reads who has no cloud configured.
pub const WHAT_IT_NEEDS: &str = "no OpenStack cloud is configured: run the operator with OS_CLOUD and a clouds.yaml, or with \
                                 OS_AUTH_URL and the other OS_* variables; or put them into the Secret \
                                 openstack-sg-controller of its namespace; or name a Secret in spec.cloudRef";

/// Whether the environment says which cloud there is, rightly or not.
#[must_use]
pub fn is_configured() -> bool {
    !matches!(of_the_environment(), Ok(None))
}

/// Gives the credentials of the surroundings, if there are any.
type Ambient = dyn Fn() -> Result<Option<Access>, BadAccess> + Send + Sync;

/// The clouds that an operator works with. Clones share their sessions.
#[derive(Clone)]
pub struct Clouds {
    network: Arc<dyn Network>,
    ambient: Arc<Ambient>,
    sessions: Arc<Mutex<BTreeMap<Source, Arc<Session>>>>,
}

/// Where credentials come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Ambient,
    Secret { key: Key, cloud: Option<String> },
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// Somebody has to do something; one word and the text say what.
    Misconfigured(&'static str, String),
    /// The API server did not say what is in a Secret.
    Unknown(Error),
}

impl Clouds {
    /// The clouds of the internet, with what the environment and the files of this machine say.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::new(Arc::new(Internet), of_the_environment)
    }

    /// Clouds on a network, with credentials for those objects that name none.
    pub fn new(
        network: Arc<dyn Network>,
        ambient: impl Fn() -> Result<Option<Access>, BadAccess> + Send + Sync + 'static,
    ) -> Self {
        Self { network, ambient: Arc::new(ambient), sessions: Arc::default() }
    }

    /// The session with the cloud of `object`.
    pub(crate) async fn session(
        &self,
        ctx: &Context,
        object: &SecurityGroup,
    ) -> Result<Arc<Session>, NoSession> {
        let (source, access) = match &object.spec.cloud_ref {
            Some(named) => self.named(ctx, object, named).await?,
            None => self.default(ctx).await?,
        };
        if let Some(session) = self.sessions.lock().get(&source)
            && *session.access() == access
        {
            return Ok(Arc::clone(session));
        }
        let session = Session::new(access, &*self.network)
            .map_err(|error| NoSession::Misconfigured("BadCredentials", error.to_string()))?;
        let session = Arc::new(session);
        self.sessions.lock().insert(source, Arc::clone(&session));
        Ok(session)
    }

    async fn named(
        &self,
        ctx: &Context,
        object: &SecurityGroup,
        named: &CloudRef,
    ) -> Result<(Source, Access), NoSession> {
        let key = Key::new(object.metadata.namespace.clone(), &named.name);
        let Some(data) = secret(ctx, &key).await? else {
            return Err(NoSession::Misconfigured("NoCloud", format!("there is no Secret {key}")));
        };
        let access = Access::from_secret(&data, named.cloud.as_deref())
            .map_err(|error| NoSession::Misconfigured("BadCredentials", format!("Secret {key}: {error}")))?;
        Ok((Source::Secret { key, cloud: named.cloud.clone() }, access))
    }

    async fn default(&self, ctx: &Context) -> Result<(Source, Access), NoSession> {
        let bad = |error: BadAccess| NoSession::Misconfigured("BadCredentials", error.to_string());
        if let Some(access) = (self.ambient)().map_err(bad)? {
            return Ok((Source::Ambient, access));
        }
        let key = Key::namespaced(ctx.client().default_namespace(), SECRET);
        let Some(data) = secret(ctx, &key).await? else {
            return Err(NoSession::Misconfigured("NoCloud", WHAT_IT_NEEDS.to_owned()));
        };
        let access = Access::from_secret(&data, None)
            .map_err(|error| NoSession::Misconfigured("BadCredentials", format!("Secret {key}: {error}")))?;
        Ok((Source::Secret { key, cloud: None }, access))
    }
}

/// The data of a Secret, asked for each time: nothing secret stays in a cache, and no right to list Secrets is needed.
async fn secret(ctx: &Context, key: &Key) -> Result<Option<BTreeMap<String, String>>, NoSession> {
    let Some(secret) = ctx.live::<Secret>(key).await.map_err(NoSession::Unknown)? else { return Ok(None) };
    let texts = secret.data.unwrap_or_default().into_iter();
    Ok(Some(texts.filter_map(|(name, bytes)| Some((name, String::from_utf8(bytes.0).ok()?))).collect()))
}

/// What the environment says: a cloud of a `clouds.yaml`, or the variables themselves.
fn of_the_environment() -> Result<Option<Access>, BadAccess> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let read = |path: &str| {
        fs::read_to_string(path).map_err(|error| BadAccess(format!("{path} cannot be read: {error}")))
    };
    let cloud = variable("OS_CLOUD");
    let file = variable("OS_CLIENT_CONFIG_FILE");
    if cloud.is_none() && file.is_none() {
        return match variable("OS_AUTH_URL") {
            Some(_) => Access::from_variables(variable, &read).map(Some),
            None => Ok(None),
        };
    }
    let path = file.map(PathBuf::from).or_else(|| places().into_iter().find(|path| path.is_file()));
    let path = path.ok_or_else(|| BadAccess("OS_CLOUD is set, and there is no clouds.yaml".to_owned()))?;
    let text = read(&path.to_string_lossy())?;
    Access::from_clouds_yaml(&text, cloud.as_deref(), &read).map(Some)
}

/// Where a `clouds.yaml` may be (openstacksdk's documentation, "Configuring OpenStack SDK Applications").
fn places() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let user = home.map(|home| home.join(".config/openstack/clouds.yaml"));
    let places = [Some(PathBuf::from("clouds.yaml")), user, Some("/etc/openstack/clouds.yaml".into())];
    places.into_iter().flatten().collect()
}
