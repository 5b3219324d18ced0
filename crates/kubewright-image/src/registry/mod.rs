//! Pushes images to registries and pulls them from there: `github.com/opencontainers/distribution-spec` v1.1, with the
//! authentication of `github.com/distribution/distribution` (`docs/spec/auth`).
//!
//! This part is asynchronous, and there with the feature `registry` only.

mod authorization;
mod challenge;
mod credentials;
mod error;
mod http;
mod proxy;
mod pull;
mod push;
mod session;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use self::{
    credentials::{Credential, Credentials, CredentialsError},
    error::RegistryError,
};
use self::{http::Http, session::Session};
use crate::{Digest, Loaded, Reference, Store};

/// A client of registries.
#[derive(Debug)]
pub struct Client {
    http: Http,
    credentials: Credentials,
    plain_http: bool,
}

/// What happens to a blob while an image is pushed or pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is there already.
    Exists(Digest),
    /// It begins to be transferred: this many bytes.
    Begins(Digest, u64),
    /// It was transferred.
    Done(Digest),
}

/// What a client is to do with an image in a registry, for which tokens are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Pull,
    Push,
}

impl Access {
    fn actions(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }
}

impl Client {
    /// A client that has these credentials. Registries on this machine's loopback addresses may speak HTTP; others only
    /// where `plain_http` says so. HTTPS is tried first with all. Others than those on loopback addresses are reached
    /// through the proxy that `HTTPS_PROXY` (without TLS `HTTP_PROXY`) or `ALL_PROXY` names, unless `NO_PROXY` names them.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(credentials: Credentials, plain_http: bool) -> Result<Self, RegistryError> {
        Ok(Self { http: Http::new()?, credentials, plain_http })
    }

    /// Pushes the image with this manifest from an OCI image layout, such as the folder of a [`Store`], to the registry,
    /// repository and tag of `name`. What is there already is not sent again.
    ///
    /// # Errors
    /// When the layout does not have it, the registry cannot be reached or refuses, or says afterwards that it has
    /// something else.
    pub async fn push(
        &self,
        layout: &Path,
        manifest: Digest,
        name: &Reference,
        mut told: impl FnMut(Event),
    ) -> Result<(), RegistryError> {
        let session = self.session(name, Access::Push).await?;
        push::push(&session, layout, manifest, name, &mut told).await
    }

    /// Pulls an image into a store; of an image for several machines, the one for this machine. What comes is checked
    /// against its digests before it is in the store.
    ///
    /// # Errors
    /// When the registry cannot be reached, does not have it or refuses, there is none for this machine, or something is not
    /// what its digest says.
    pub async fn pull(
        &self,
        name: &Reference,
        store: &Store,
        mut told: impl FnMut(Event),
    ) -> Result<Loaded, RegistryError> {
        let session = self.session(name, Access::Pull).await?;
        pull::pull(&session, name, store, &mut told).await
    }

    async fn session(&self, name: &Reference, access: Access) -> Result<Session<'_>, RegistryError> {
        let credential = self.credentials.find(name.domain(), name.repository())?;
        Session::open(&self.http, name, access, credential, self.plain_http).await
    }
}
