//! An authority of the operator's own: in memory, or in a Secret that replicas share.

use std::{pin::pin, time::Duration};

use futures::StreamExt;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
    runtime::watcher,
};
use kubewright_world::World;
use tokio::sync::watch;

use super::{
    Shown,
    authorities::{Authorities, Issued, Lifetimes},
};
use crate::{Error, Key};

/// The keys of the Secret.
const CERTIFICATES: &str = "ca.crt";
const KEYS: &str = "ca.key";

/// The longest wait, so that a clock that jumps is noticed.
const LONGEST_WAIT: Duration = Duration::from_secs(12 * 3600);

/// How often another replica may be faster before there is a pause.
const MOST_TRIES: u32 = 5;

/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

pub(super) async fn in_memory(
    world: &World,
    lifetimes: Lifetimes,
    names: &[String],
    shown: &watch::Sender<Option<Shown>>,
) -> Result<(), Error> {
    let mut authorities = Authorities::new(world, lifetimes).map_err(Error::new)?;
    let mut issued = None;
    loop {
        let wait = show(&authorities, world, names, &mut issued, shown)?;
        tokio::time::sleep(wait).await;
        authorities.advance(world).map_err(Error::new)?;
    }
}

/// Goes on for ever: while the API server or the Secret cannot be had, what is shown stays.
pub(super) async fn in_secret(
    client: &Client,
    world: &World,
    lifetimes: Lifetimes,
    key: &Key,
    names: &[String],
    shown: &watch::Sender<Option<Shown>>,
) {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut changes = pin!(watcher::watch_object(secrets.clone(), &key.name).fuse());
    let (mut issued, mut pause) = (None, Duration::from_millis(250));
    loop {
        let current = current(&secrets, world, lifetimes, key).await;
        let wait = match current.and_then(|authorities| show(&authorities, world, names, &mut issued, shown))
        {
            Ok(wait) => {
                pause = Duration::from_millis(250);
                wait
            }
            Err(error) => {
                tracing::warn!(secret = %key, %error, retry_in = ?pause, "the authority of the webhooks cannot be had");
                let wait = pause;
                pause = (pause * 2).min(LONGEST_PAUSE);
                wait
            }
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            () = changed(&mut changes, wait) => {}
        }
    }
}

/// Waits for the next change of the Secret. A watch that fails is opened anew by the watcher; it is polled again after a
/// while only.
async fn changed<S>(changes: &mut S, wait: Duration)
where
    S: futures::stream::FusedStream<Item = Result<Option<Secret>, watcher::Error>> + Unpin,
{
    match changes.next().await {
        Some(Ok(_)) => {}
        Some(Err(error)) => {
            tracing::debug!(%error, "the watch on the authority of the webhooks failed");
            tokio::time::sleep(LONGEST_PAUSE.min(wait)).await;
        }
        None => std::future::pending().await,
    }
}

/// The authorities in the Secret, after what is due was done to them: by this replica, or by another that was faster.
async fn current(
    secrets: &Api<Secret>,
    world: &World,
    lifetimes: Lifetimes,
    key: &Key,
) -> Result<Authorities, Error> {
    let mut tries = 0;
    loop {
        let found = secrets.get_opt(&key.name).await?;
        let written = match found {
            None => {
                let authorities = Authorities::new(world, lifetimes).map_err(Error::new)?;
                let metadata = ObjectMeta { name: Some(key.name.clone()), ..Default::default() };
                let mut secret = Secret { metadata, ..Default::default() };
                keep(&mut secret, &authorities);
                secrets.create(&PostParams::default(), &secret).await.map(|_| authorities)
            }
            Some(mut secret) => {
                let mut authorities = read(world, &secret, lifetimes).map_err(|why| {
                    Error::new(format!(
                        "the Secret {key} holds no authority ({why}); without it, a new one is made"
                    ))
                })?;
                if !authorities.advance(world).map_err(Error::new)? {
                    return Ok(authorities);
                }
                keep(&mut secret, &authorities);
                secrets.replace(&key.name, &PostParams::default(), &secret).await.map(|_| authorities)
            }
        };
        match written.map_err(Error::from) {
            Ok(authorities) => return Ok(authorities),
            // Another replica was faster: its authority counts.
            Err(error) if tries < MOST_TRIES && (error.is_conflict() || error.is_already_exists()) => {
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

fn read(world: &World, secret: &Secret, lifetimes: Lifetimes) -> Result<Authorities, String> {
    let part = |name: &str| {
        let data = secret.data.as_ref().and_then(|data| data.get(name));
        data.map(|bytes| bytes.0.as_slice()).ok_or_else(|| format!("no {name}"))
    };
    Authorities::read(world, part(CERTIFICATES)?, part(KEYS)?, lifetimes).map_err(|error| error.to_string())
}

fn keep(secret: &mut Secret, authorities: &Authorities) {
    let data = secret.data.get_or_insert_default();
    data.insert(CERTIFICATES.to_owned(), ByteString(authorities.bundle().into_bytes()));
    data.insert(KEYS.to_owned(), ByteString(authorities.keys().into_bytes()));
}

/// Shows a certificate of these authorities; how long nothing will be due then.
fn show(
    authorities: &Authorities,
    world: &World,
    names: &[String],
    issued: &mut Option<Issued>,
    shown: &watch::Sender<Option<Shown>>,
) -> Result<Duration, Error> {
    let next = authorities.issue(world, names, issued.take()).map_err(Error::new)?;
    let certified = next.certificate.certified().map_err(Error::new)?;
    let fresh = Shown::new(certified, Some(authorities.bundle()));
    shown.send_if_modified(|shown| {
        let same = shown.as_ref().is_some_and(|shown| shown.is(&fresh));
        if !same {
            *shown = Some(fresh);
        }
        !same
    });
    let wait = authorities.next(world, &next).clamp(Duration::from_secs(1), LONGEST_WAIT);
    *issued = Some(next);
    Ok(wait)
}

impl Shown {
    /// Whether it shows the same.
    fn is(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert && self.bundle == other.bundle
    }
}
